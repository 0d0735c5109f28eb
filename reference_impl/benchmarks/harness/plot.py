"""A result as a picture: decode beside its peers, the cost of a pass, batching, prefix sharing. Needs matplotlib."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from reference_impl.benchmarks.harness.result import Result, Section


def plot(result: Result, path: Path) -> bool:
    """Draws the sections that the result has and this file knows, into `path` (.png, .svg, .pdf). False if none."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    drawers = {
        "decode": _decode,
        "passes": _passes,
        "batching": _batching,
        "prefix": _prefix,
        "gpu_decode": _gpu_decode,
    }
    known = [section for section in result.sections if section.name in drawers and section.rows]
    if not known:
        return False
    figure, axes = pyplot.subplots(1, len(known), figsize=(5.5 * len(known), 4.2), squeeze=False, layout="constrained")
    for ax, section in zip(axes[0], known, strict=True):
        drawers[section.name](ax, section)
    quiet = "" if result.settings.get("quiet", True) else " (not a quiet machine)"
    figure.suptitle(f"{result.hardware['name']}, {result.date}{quiet}")
    figure.savefig(path, dpi=130)
    pyplot.close(figure)
    return True


def _decode(ax: Any, section: Section) -> None:
    engines = dict.fromkeys((row["engine"], row["dtype"]) for row in section.rows)
    batches = list(dict.fromkeys(row["batch"] for row in section.rows))
    width = 0.8 / len(engines)
    for i, (engine, dtype) in enumerate(engines):
        rates = {
            r["batch"]: r["tokens_per_second"] for r in section.rows if (r["engine"], r["dtype"]) == (engine, dtype)
        }
        places = [batches.index(batch) + (i - len(engines) / 2 + 0.5) * width for batch in rates]
        ax.bar(places, list(rates.values()), width, label=f"{engine} {dtype}")
    ax.set_xticks(range(len(batches)), [f"batch {batch}" for batch in batches])
    ax.set_yscale("log")
    ax.set_ylabel("token/s")
    ax.set_title("Decode")
    ax.legend(fontsize="small")


def _passes(ax: Any, section: Section) -> None:
    tokens = [row["tokens"] for row in section.rows]
    lines = {"fp32_cost": "fp32", "bf16_cost": "bf16", "plain_cost": "plain F.linear", "bound_cost": "predicted"}
    for key, label in lines.items():
        ax.plot(tokens, [row[key] for row in section.rows], "--" if key == "bound_cost" else ".-", label=label)
    ax.set_xscale("log", base=2)
    ax.set_yscale("log", base=2)
    ax.set_xlabel("tokens in the pass")
    ax.set_ylabel("× a pass over one token")
    ax.set_title("Cost of a pass")
    ax.legend(fontsize="small")


def _batching(ax: Any, section: Section) -> None:
    kinds = [row["batching"] for row in section.rows]
    first = section.rows[0]
    for offset, key, label in ((-0.2, "paper_steps", "steps, on paper"), (0.2, "seconds", "seconds, measured")):
        ax.bar(
            [i + offset for i in range(len(kinds))], [row[key] / first[key] for row in section.rows], 0.4, label=label
        )
    ax.set_xticks(range(len(kinds)), kinds)
    ax.set_ylabel(f"{kinds[0]} batching = 1")
    ax.set_title("Batching")
    ax.legend(fontsize="small")


def _prefix(ax: Any, section: Section) -> None:
    ax.bar([row["sharing"] for row in section.rows], [row["milliseconds"] for row in section.rows], 0.5)
    ax.set_xlabel("prefix sharing")
    ax.set_ylabel("TTFT, ms")
    ax.set_title("Prefix sharing")


def _gpu_decode(ax: Any, section: Section) -> None:
    batches = [str(row["batch"]) for row in section.rows]
    ax.plot(batches, [row["paper_tokens_per_second"] for row in section.rows], "--", label="on paper")
    ax.plot(batches, [row["tokens_per_second"] for row in section.rows], ".-", label="measured")
    ax.set_xlabel("batch")
    ax.set_ylabel("token/s")
    ax.set_title("Decode on the GPU")
    ax.legend(fontsize="small")
