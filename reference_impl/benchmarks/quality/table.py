"""The quantization table of one model: every format and method under one evaluation, in bytes and in quality.

Figures from different papers cannot be compared, so everything is measured here: the same held-out text, the same
tasks, the same grids for rounding, GPTQ and AWQ. The order is predicted before anything is measured. Finished rows and
layers are kept in a folder, so an interrupted table goes on where it was.
"""

from __future__ import annotations

import json
import shutil
import time
from collections.abc import Callable, Sequence
from itertools import combinations
from pathlib import Path
from typing import Any

import torch
from torch import Tensor
from tqdm import tqdm

from reference_impl.benchmarks.harness import report
from reference_impl.benchmarks.harness.committed import newest
from reference_impl.benchmarks.harness.result import Row, Section
from reference_impl.benchmarks.quality.evaluate import accuracy, score, together
from reference_impl.benchmarks.quality.expected_error import expected_error
from reference_impl.benchmarks.quality.held_out import Amount, HeldOut, Material, material
from reference_impl.bounds.config import ModelConfig
from reference_impl.checkpoints import weights
from reference_impl.checkpoints.tokenizer import Tokenizer
from reference_impl.common.files import written_whole
from reference_impl.model.llama import Llama
from reference_impl.quantization import gguf_blocks
from reference_impl.quantization.calibrate import LINEARS, METHODS, Recipe, quantize_layers
from reference_impl.quantization.forward import Tokens, hidden_states

# GPTQ with ten times the paper's damping: it calibrates on 4,096 to 8,192 tokens here, not on 262,144.
_OPTIONS: dict[str, dict[str, Any]] = {
    "rounding": {},
    "gptq": {"damping": 0.1, "act_order": True},
    "awq": {"steps": 10},
}
RECIPES = (
    Recipe("rounding", 8, 128),
    *(Recipe(method, bits, n, **_OPTIONS[method]) for bits, n in ((4, 32), (4, 128), (3, 128)) for method in METHODS),
)
FLOAT = "float"
OWN_GRID = "Q4_1, its own grid"
COLUMNS = {
    "weights": "weights",
    "bits": "bits/weight",
    "linear_mb": "linear MB",
    "bits_per_byte": "bits/byte",
    "perplexity_code": "ppl code",
    "perplexity_prose": "ppl prose",
    "kl": "KL, nats",
    "kl_error": "±",
    "agreement": "same top %",
    "arithmetic": "sums %",
    "copying": "copy %",
    "code": "code %",
    "long context": "long %",
    "tokens_per_second": "token/s",
}
_IN_LESSONS = (
    "weights", "bits", "kl", "agreement", "perplexity_code", "arithmetic", "copying", "code", "long context",
    "tokens_per_second",
)  # fmt: skip
_RANK = {"gptq": 0, "awq": 1, "rounding": 2}  # on one grid, best first

Say = Callable[[str], None]
Rates = dict[tuple[int, int | None] | None, float]  # (bits, group size), or None for float -> token/s at batch 1
Speed = Callable[[str, Sequence[Recipe]], Rates]


def label(recipe: Recipe) -> str:
    return f"int{recipe.bits} g{recipe.group_size or 'row'} {recipe.method}"


def predicted_order(recipes: Sequence[Recipe] = RECIPES) -> list[str]:
    """Labels, best first: by the grid's error on normal weights, and on one grid GPTQ before AWQ before rounding."""
    ranked = sorted(recipes, key=lambda r: (expected_error(r.group_size or 4096, r.bits), _RANK[r.method]))
    return [label(recipe) for recipe in ranked]


def pairs_as_predicted(rows: Sequence[Row], order: Sequence[str]) -> tuple[int, int]:
    """(pairs of rows whose KL is in the predicted order, all pairs)."""
    kl = {row["weights"]: row["kl"] for row in rows}
    pairs = [(kl[better], kl[worse]) for better, worse in combinations([name for name in order if name in kl], 2)]
    return sum(better < worse for better, worse in pairs), len(pairs)


def amount_for(config: ModelConfig) -> Amount:
    """Less text for a large model, which takes longer and shows its damage in little text."""
    return Amount(calibration=16, code=6, prose=3) if config.n_params > 5e7 else Amount(32, 24, 12)


def measure(
    source: str,
    texts: HeldOut,
    folder: Path,
    recipes: Sequence[Recipe] = RECIPES,
    amount: Amount | None = None,
    seed: int = 0,
    speed: Speed | None = None,
    say: Say = lambda text: None,
) -> Section:
    """All rows for one model, with their notes. `folder` keeps what is finished."""
    model, tokenizer = weights.load(source)
    config = model.config
    amount = amount or amount_for(config)
    given = material(texts, tokenizer, amount, seed, config.max_context)
    reference = {kind: hidden_states(model, pieces) for kind, pieces in given.evaluation.items()}
    already = any(stored.format not in ("F32", "F16", "BF16") for stored in weights.stored_types(source).values())
    jobs: list[tuple[str, Recipe | None]] = [(FLOAT, None), *((label(r), r) for r in recipes)]
    if already:
        jobs.append((OWN_GRID, None))

    section = Section(f"quantization {config.name}", _title(config, already), COLUMNS)
    folder.mkdir(parents=True, exist_ok=True)
    for number, (name, recipe) in enumerate(tqdm(jobs, desc=config.name, unit="row", leave=False)):
        done = folder / f"row-{number:02d}.json"
        if done.is_file():
            section.rows.append(json.loads(done.read_text()))
            continue
        started, used = time.perf_counter(), time.process_time()
        if name != FLOAT:
            model = weights.load(source).model
        layers = folder / f"layers-{number:02d}"
        n_bytes, n_weights = _quantize(model, name, recipe, given.calibration, layers)
        row: Row = {"weights": name, "bits": 8 * n_bytes / n_weights, "linear_mb": n_bytes / 1e6}
        states = reference if name == FLOAT else {k: hidden_states(model, p) for k, p in given.evaluation.items()}
        row |= _quality(model, states, reference, given, tokenizer)
        row["cpu_seconds"] = round(time.process_time() - used, 1)
        section.rows.append(row)
        with written_whole(done) as part:
            part.write_text(json.dumps(row))
        shutil.rmtree(layers, ignore_errors=True)
        say(f"{config.name}, {name}: KL {row['kl']:.4f} nats a token ({time.perf_counter() - started:.0f} s)")
    rates = {} if speed is None else speed(source, recipes)
    for row, (name, recipe) in zip(section.rows, jobs, strict=True):
        form = None if recipe is None else (recipe.bits, recipe.group_size)
        row["tokens_per_second"] = None if name == OWN_GRID else rates.get(form)
    section.notes += _notes(section, given, amount, predicted_order(recipes), already)
    return section


def committed_table(model: str) -> Section | None:
    """The newest table of one model in this repository."""
    name = f"quantization {model}"
    result = newest(name)
    return None if result is None else result.section(name)


def committed_rows(model: str) -> dict[str, Row]:
    """Its rows by their first column; empty if there is no table."""
    section = committed_table(model)
    return {} if section is None else {row["weights"]: row for row in section.rows}


def lesson_table(model: str) -> str:
    """That table in the columns that a lesson needs, with its notes and machine, or a sentence that there is none."""
    section, result = committed_table(model), newest(f"quantization {model}")
    if section is None or result is None:
        return (
            f"No table of {model} lies in this repository yet: `python -m reference_impl quantization-table` makes one."
        )
    measured = [key for key in _IN_LESSONS if any(row[key] is not None for row in section.rows)]
    columns = {key: COLUMNS[key] for key in measured}
    short = Section(section.name, section.title, columns, section.rows, [], section.notes[1:])
    return f"{report.section_text(short)}\nmeasured on {result.hardware['name']}, {result.date}"


def _quantize(
    model: Llama, name: str, recipe: Recipe | None, calibration: Sequence[Tokens], layers: Path
) -> tuple[int, int]:
    """Quantizes the linear layers in place; returns their bytes, and how many weights they have."""
    matrices: list[Tensor] = [getattr(layer, linear).weight for layer in model.layers for linear in LINEARS]
    n_weights = sum(matrix.numel() for matrix in matrices)
    if recipe is not None:
        found = quantize_layers(model, recipe, calibration, folder=layers)
        return sum(weight.n_bytes for weight in found.values()), n_weights
    if name == FLOAT:
        return 2 * n_weights, n_weights  # as bf16 or fp16
    n_bytes = 0
    with torch.no_grad():
        for matrix in matrices:
            data = gguf_blocks.write(matrix.numpy(), "Q4_1", underflow="zero")
            matrix.copy_(torch.from_numpy(gguf_blocks.read(data, "Q4_1")))
            n_bytes += data.nbytes
    return n_bytes, n_weights


def _quality(
    model: Llama,
    states: dict[str, list[Tensor]],
    reference: dict[str, list[Tensor]],
    given: Material,
    tokenizer: Tokenizer,
) -> Row:
    scores = {
        kind: score(model, states[kind], reference[kind], pieces, tokenizer)
        for kind, pieces in given.evaluation.items()
    }
    row: Row = {f"perplexity_{kind}": together(found).perplexity for kind, found in scores.items()}
    whole = together([one for found in scores.values() for one in found])
    row |= {"bits_per_byte": whole.bits_per_byte, "kl": whole.kl, "kl_error": whole.kl_error}
    row["agreement"] = 100 * whole.agreement
    return row | {name: 100 * accuracy(model, items) for name, items in given.items.items()}


def _title(config: ModelConfig, already: bool) -> str:
    reference = "itself, as its 4-bit file gives it" if already else "its own bf16 weights"
    return f"{config.name} ({config.n_params / 1e6:.1f} M parameters) quantized, compared with {reference}"


def _notes(section: Section, given: Material, amount: Amount, order: Sequence[str], already: bool) -> list[str]:
    held, pairs = pairs_as_predicted(section.rows, order)
    n_tokens = (amount.code + amount.prose) * (amount.length - 1)
    answers = ", ".join(f"{name} {sum(len(item.scored) for item in items)}" for name, items in given.items.items())
    notes = [
        f"predicted, best first: {', '.join(order)}",
        f"measured by KL: {held} of {pairs} pairs of rows stand in the predicted order",
        f"text: {n_tokens:,} tokens scored ({amount.code} windows of code, {amount.prose} of prose); calibration on"
        f" {amount.calibration * amount.length:,} tokens of other files; answer tokens: {answers}",
        f"{sum(row['cpu_seconds'] for row in section.rows):,.0f} CPU-seconds for all rows, quantizing included",
        "linear MB: the layers' matrices with fp16 scales, float as 16 bits; embeddings and head are not quantized",
    ]
    if any(row["tokens_per_second"] for row in section.rows):
        notes.append(
            "token/s: decode at batch 1 in this run, by the engine's own kernels, float as bf16; a format has one"
            " speed, whatever the method; 3 bits have no kernel"
        )
    if already:
        notes.append(
            "the trap: this file was made on the Q4_1 grid, so going there again loses nothing and says nothing;"
            " the other grids are honest, relative to these weights"
        )
    return notes
