"""The command `quantization-table`: formats and methods for fewer bits under one evaluation, as text and as JSON.

python -m reference_impl quantization-table [--models course-target smollm2-135m] [--output FOLDER] [--fresh]
"""

from __future__ import annotations

import hashlib
import json
import shutil
import sys
import time
from collections.abc import Sequence
from pathlib import Path

import torch

from reference_impl import __version__
from reference_impl.benchmarks.harness import report
from reference_impl.benchmarks.harness.session import new_result
from reference_impl.benchmarks.quality.expected_error import expected_error
from reference_impl.benchmarks.quality.held_out import held_out
from reference_impl.benchmarks.quality.speed import decode_rates
from reference_impl.benchmarks.quality.table import RECIPES, measure, predicted_order
from reference_impl.checkpoints import weights
from reference_impl.checkpoints.fetch import cache_dir
from reference_impl.common import cli

MODELS = ("course-target", weights.DEFAULT_MODEL)


def main(argv: list[str]) -> None:
    parser = cli.parser("quantization-table", "formats and methods under one evaluation: bytes, quality, speed")
    parser.add_argument("--models", nargs="+", default=MODELS, help=f"names, folders or files ({' '.join(MODELS)})")
    parser.add_argument("--output", type=Path, help="folder for the JSON (default: none is written)")
    parser.add_argument("--seed", type=cli.count, default=0, help="draws the windows of text and the tasks (0)")
    parser.add_argument("--fresh", action="store_true", help="forget what an interrupted run has finished")
    options = parser.parse_args(argv)
    started = time.perf_counter()

    def say(text: str) -> None:
        print(f"[{time.perf_counter() - started:4.0f} s] {text}", file=sys.stderr, flush=True)

    for source in options.models:
        weights.resolve(source)  # a name that does not exist is an error before the work begins
    print("Predicted order, best first, before anything is measured:")
    for place, name in enumerate(predicted_order(RECIPES), start=1):
        print(f"{place:3}. {name}")
    errors = {f"int{r.bits} g{r.group_size}": expected_error(r.group_size or 1, r.bits) for r in RECIPES}
    grids = ", ".join(f"{grid} {error:.1%}" for grid, error in errors.items())
    print(f"The grid decides first (error expected for normal weights: {grids}); on one grid GPTQ before AWQ before")
    print("rounding: both look at the inputs, and GPTQ moves every weight, AWQ only one scale a column.\n", flush=True)

    texts = held_out()
    result = new_result("cpu")
    result.settings |= {"seed": options.seed, "text": texts.digest, "models": list(options.models)}
    unfinished = _folder(options.seed, texts.digest)
    quiet = bool(result.settings["quiet"])
    if not quiet:
        say(
            f"token/s will be left out: other programs are running (load average {result.settings['load_average']:.1f})"
        )
    folders = [unfinished / hashlib.sha256(str(source).encode()).hexdigest()[:8] for source in options.models]
    if options.fresh:
        _forget(folders)
    for source, kept in zip(options.models, folders, strict=True):
        section = measure(
            source, texts, kept, RECIPES, seed=options.seed, say=say, speed=decode_rates if quiet else None
        )
        result.sections.append(section)
        print(report.section_text(section) + "\n", flush=True)
    if options.output is not None:
        say(f"written: {result.write(options.output, ['quantization'])}")
    _forget(folders)


def _forget(folders: Sequence[Path]) -> None:
    for folder in folders:
        shutil.rmtree(folder, ignore_errors=True)


def _folder(seed: int, digest: str) -> Path:
    """Where this run keeps what is finished. Another seed, text or version of anything makes another run."""
    about = json.dumps([seed, digest, __version__, torch.__version__, [str(recipe) for recipe in RECIPES]])
    return cache_dir() / "quantization-table" / hashlib.sha256(about.encode()).hexdigest()[:16]
