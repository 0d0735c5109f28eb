"""Chooses one token for each row of logits, for many requests at once.

One call finds the largest logits of all rows, and one computes the distributions of all rows with equal parameters. The
random number of each row belongs to its request, so the requests that share a batch never change each other's answers.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor

from reference_impl.decoding.sampling import SamplingParams, processed_probs, sample


def choose_tokens(logits: Tensor, params: Sequence[SamplingParams], uniforms: Sequence[float]) -> list[int]:
    """The next token after each row of logits [n_rows, vocabulary].

    `uniforms` are numbers in [0, 1), one a row; greedy rows do not use theirs. ValueError as in `sampling`.
    """
    return [token for token, _ in choose_with_probs(logits, params, uniforms)]


def choose_with_probs(
    logits: Tensor, params: Sequence[SamplingParams], uniforms: Sequence[float]
) -> list[tuple[int, Tensor | None]]:
    """As `choose_tokens`, with the distribution [vocabulary] behind each token; None for a greedy row."""
    if not params:
        return []
    chosen: list[tuple[int, Tensor | None]] = [(token, None) for token in _argmax(logits)]
    alike: dict[tuple[float, ...], list[int]] = {}
    for row, wanted in enumerate(params):
        if not wanted.greedy:
            key = (wanted.temperature, wanted.top_k, wanted.top_p, wanted.min_p)
            alike.setdefault(key, []).append(row)
    for rows in alike.values():
        probs = processed_probs(logits[rows], params[rows[0]])
        numbers = torch.tensor([uniforms[row] for row in rows], dtype=torch.float64, device=probs.device)
        for row, token, drawn_from in zip(rows, sample(probs, numbers).tolist(), probs, strict=True):
            chosen[row] = token, drawn_from
    return chosen


def rows_without_a_choice(logits: Tensor) -> list[int]:
    """Rows of logits [n_rows, vocabulary] whose largest value is NaN or infinite (NaN wins every comparison)."""
    if not len(logits):
        return []
    if _for_numpy(logits):
        return np.flatnonzero(~np.isfinite(logits.numpy().max(axis=-1))).tolist()
    return (~torch.isfinite(logits.amax(dim=-1))).nonzero().flatten().tolist()


def _argmax(logits: Tensor) -> list[int]:
    return logits.numpy().argmax(axis=-1).tolist() if _for_numpy(logits) else logits.argmax(dim=-1).tolist()


def _for_numpy(logits: Tensor) -> bool:
    """NumPy searches a row three times as fast as PyTorch on a CPU: a tenth of a millisecond in every step."""
    return logits.is_cpu and not logits.requires_grad and logits.dtype in (torch.float32, torch.float64)
