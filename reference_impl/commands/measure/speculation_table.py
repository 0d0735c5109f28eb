"""The command `speculation-table`: the gain from drafts by kind of text, as text and as JSON.

python -m reference_impl speculation-table [--target MODEL --draft MODEL] [--output FOLDER]
"""

from __future__ import annotations

import sys
from pathlib import Path

from reference_impl.benchmarks.harness import report
from reference_impl.benchmarks.harness.session import new_result
from reference_impl.benchmarks.speculation.notes import trained_draft
from reference_impl.benchmarks.speculation.table import EFFORT, K, acceptance, batches, lengths, speedup, subject
from reference_impl.checkpoints.weights import DEFAULT_MODEL, load
from reference_impl.common import cli


def main(arguments: list[str]) -> None:
    """`python -m reference_impl speculation-table`"""
    parser = cli.parser("speculation-table", "What drafts bring, by kind of text: acceptance, tokens a pass, speed-up.")
    parser.add_argument("--target", help=f"default: course-target and {DEFAULT_MODEL}, one after the other")
    parser.add_argument("--draft", metavar="ngram|MODEL", help="with --target: where its drafts come from (ngram)")
    parser.add_argument("--quick", action="store_true", help="a look: few short answers, nothing to quote")
    parser.add_argument("--json", action="store_true", help="print the figures as JSON")
    parser.add_argument("--output", type=Path, metavar="FOLDER", help="also keep the figures there, as JSON")
    options = parser.parse_args(arguments)
    if options.draft is not None and options.target is None:
        raise ValueError("--draft needs a --target")

    def say(text: str) -> None:
        print(text, file=sys.stderr, flush=True)

    asked = (
        [(options.target, [options.draft or "ngram"])]
        if options.target
        else [
            ("course-target", ["course-draft", "ngram"]),
            (DEFAULT_MODEL, ["ngram"]),
        ]
    )
    result = new_result("cpu", quick=options.quick)
    subjects = []
    for name, drafts in asked:
        say(f"{name}: plain greedy answers")
        target = load(name)
        effort = EFFORT["small" if target.model.config.n_params < 20e6 else "large"][options.quick]
        subjects += [subject(target, draft, effort) for draft in drafts]
    result.sections += [acceptance(subjects), speedup(subjects, say), lengths(subjects, say), batches(subjects, say)]
    for one in subjects:
        if one.draft == "ngram" and one.target.model.config.name == DEFAULT_MODEL:
            result.sections[2].notes.append(trained_draft(one.target.model, one.answers["code"], one.replay("code", K)))
    print(result.to_json() if options.json else report.text(result))
    if options.output is not None:
        parts = [
            "speculation",
            *(f"{one.target.model.config.name}-{Path(one.draft_name).name}" for one in subjects[:1] if options.target),
        ]
        say(f"written: {result.write(options.output, [*parts, *(['quick'] if options.quick else [])])}")
