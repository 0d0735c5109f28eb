"""The model card that `train-pair` writes beside the weights: data, licence, recipe, scores, limits."""

from __future__ import annotations

from collections.abc import Callable

from reference_impl.training.recipe import Pair, Recipe
from reference_impl.training.text import KINDS, Document


def model_card(pair: Pair, texts: list[Document], scores: dict[str, dict[str, float]], python: str, docs: bool) -> str:
    """Markdown. `scores`: bits per byte by model and kind of text; `python`: the version whose library was read."""
    prose = "Python's documentation in reST (Debian's package `python3.11-doc`)" if docs else "its docstrings"
    return f"""# The course's own pair: course-target and course-draft

Two small language models of the Llama family with one tokenizer, made for lessons on speculative decoding and
quantization. They continue Python code, Python's documentation and tables of functions. They know nothing else, follow
no instructions and are not meant for use outside the course. Weights are bfloat16; nothing was ever quantized.

| | course-target | course-draft |
|---|---|---|
{_row("parameters", pair, lambda r: f"{r.config.n_params:,}")}
{_row("layers, width", pair, lambda r: f"{r.config.n_layers}, {r.config.d_model}")}
{_row("heads, KV heads, head size", pair, _heads)}
{_row("feed-forward width", pair, lambda r: str(r.config.d_ff))}
{_row("vocabulary, context", pair, lambda r: f"{r.config.vocab_size:,}, {r.config.max_context}")}
{_scores(scores)}

The target is deep and narrow and the draft one layer, so that a pass of the draft takes a fraction of the target's
time: at batch 1 the layers of a pass cost, not the parameters.

## Data and licence
- code: the standard library of Python {python}, without its tests, `encodings` and `pydoc_data`
- prose: {prose}
- structured: an index of each module's functions as JSON, CSV or INI

All of it is Copyright (c) Python Software Foundation and under the PSF License Agreement, which allows derived works;
the weights are offered under the same terms. Files are split by a hash of their name; about one in twenty is held out
whole.

| text | training files, MB | held-out files, MB |
|---|---|---|
{_data(texts)}

## Recipe
`python -m reference_impl train-pair --out FOLDER`, on one CPU thread in float32:

- byte-level BPE of {pair.vocab_size:,} tokens on the training files
- Muon ({pair.target.matrix_lr:g}) for hidden matrices; AdamW ({pair.target.other_lr:g} and {pair.draft.other_lr:g}) for
  embeddings and norms; rates full until step {_full(pair.target)} and {_full(pair.draft)}, then falling to 0
- {pair.target.n_windows} and {pair.draft.n_windows} windows of {pair.target.window} tokens a step; attention reaches
  {pair.target.short} tokens far until {pair.target.long_from:.0%} of the steps, then over the whole window

| | steps | tokens | seed | learns from |
|---|---|---|---|---|
| course-target | {pair.target.steps:,} | {pair.target.tokens:,} | {pair.target.seed} | the text |
| course-draft | {pair.draft.steps:,} | {pair.draft.tokens:,} | {pair.draft.seed} | the target |

The draft starts as the target's embeddings, first layer and last norm, and learns the target's distribution after each
token of the text (distillation), not the token that came.

## Limits
- Far from trained to the end, as the tokens above say. An under-trained model is robust, so quantization
  shows less on it than on SmolLM2.
- The context is {pair.target.config.max_context} tokens. Beyond what it saw in training it was not tested.
- Held-out files share authors, names and habits with training files: the scores are for this domain alone.
- The text holds names of contributors to Python, as the sources do.
"""


def _row(label: str, pair: Pair, cell: Callable[[Recipe], str]) -> str:
    return f"| {label} | {cell(pair.target)} | {cell(pair.draft)} |"


def _full(recipe: Recipe) -> int:
    return max(step for step, rate in recipe.rates if rate == 1.0)


def _heads(recipe: Recipe) -> str:
    c = recipe.config
    return f"{c.n_heads}, {c.n_kv_heads}, {c.head_dim}"


def _scores(scores: dict[str, dict[str, float]]) -> str:
    names = ("course-target", "course-draft")
    return "\n".join(
        f"| bits per byte, held-out {kind} | " + " | ".join(f"{scores[name][kind]:.2f}" for name in names) + " |"
        for kind in KINDS
    )


def _data(texts: list[Document]) -> str:
    def cell(kind: str, held_out: bool) -> str:
        chosen = [d for d in texts if d.kind == kind and d.held_out is held_out]
        return f"{len(chosen)}, {sum(len(d.text.encode()) for d in chosen) / 1e6:.2f}"

    return "\n".join(f"| {kind} | {cell(kind, False)} | {cell(kind, True)} |" for kind in KINDS)
