"""A result as text: a table for each section, each target with its outcome, and what to be careful about."""

from __future__ import annotations

from typing import Any

from reference_impl.benchmarks.harness.result import Result, Section, Target


def text(result: Result) -> str:
    """The whole report; no newline at the end."""
    parts = [_head(result), *map(section_text, result.sections)]
    targets = [target for section in result.sections for target in section.targets]
    failed = result.settings.get("failed") or {}
    if failed:
        parts.append("\n".join(f"FAILED {name}: {reason}" for name, reason in failed.items()))
    if targets:
        kept = sum(target.met for target in targets)
        parts.append(f"targets met: {kept} of {len(targets)}")
    return "\n\n".join(parts)


def _head(result: Result) -> str:
    versions = ", ".join(f"{name} {version}" for name, version in result.versions.items() if version)
    absent = [name for name, version in result.versions.items() if version is None]
    lines = [f"{result.hardware['name']}, {result.date}", versions]
    if absent:
        lines.append(f"not installed: {', '.join(absent)}")
    if result.settings.get("quick"):
        lines.append("a quick look: too few rounds to quote")
    if result.settings.get("real_time"):
        busy = result.settings.get("load_average")
        lines.append(f"ran with real-time priority, ahead of whatever else wanted the cores (load average {busy:.1f})")
    if not result.settings.get("quiet", True):
        busy = result.settings.get("load_average")
        lines.append(f"NOT A QUIET MACHINE (load average {busy}): take the ratios as a guide, quote nothing")
    return "\n".join(lines)


def section_text(section: Section) -> str:
    """Title, table, targets and notes of one section."""
    lines = [section.title, ""]
    lines += _table(section)
    lines += [_target(target) for target in section.targets]
    lines += section.notes
    return "\n".join(lines)


def _table(section: Section) -> list[str]:
    headings = list(section.columns.values())
    cells = [[_cell(row.get(key)) for key in section.columns] for row in section.rows]
    widths = [max(map(len, column)) for column in zip(headings, *cells, strict=True)]
    numeric = [
        all(not isinstance(row.get(key), str) for row in section.rows) for key in section.columns
    ]  # numbers are right-aligned
    lines = []
    for row in [headings, *cells]:
        padded = [
            c.rjust(width) if right else c.ljust(width) for c, width, right in zip(row, widths, numeric, strict=True)
        ]
        lines.append("  ".join(padded).rstrip())
    return lines


def _cell(value: Any) -> str:
    if value is None:
        return "–"
    if isinstance(value, float):
        return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.3g}" if abs(value) < 1 else f"{value:.2f}"
    return f"{value:,}" if isinstance(value, int) else str(value)


def _target(target: Target) -> str:
    sign = "at least" if target.at_least else "at most"
    if target.value is None:
        return f"  target NOT MEASURED  {target.what} ({sign} {target.limit:g})"
    return (
        f"  target {'met' if target.met else 'MISSED'}  {target.what}: {_cell(target.value)} ({sign} {target.limit:g})"
    )
