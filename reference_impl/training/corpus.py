"""Documents as one stream of token ids, and the windows of it that each training step reads.

The seed and the step's number alone decide which windows a step reads, so an interrupted run goes on exactly as if it
had never stopped.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from reference_impl.checkpoints.tokenizer import Tokenizer
from reference_impl.training.text import Document


@dataclass(frozen=True)
class Stream:
    """Token ids [n], uint16, each document followed by the end token."""

    tokens: np.ndarray

    def n_windows(self, length: int) -> int:
        return (len(self.tokens) - 1) // length

    def windows(self, step: int, n: int, length: int, seed: int) -> tuple[Tensor, Tensor]:
        """Step `step`'s inputs and targets, int64 [n, length] each. Targets are the inputs one token further.

        The stream is cut into windows that do not overlap, and each is read once before any is read again. ValueError
        if the stream is too short for one step.
        """
        per_epoch = self.n_windows(length) // n  # steps
        if per_epoch < 1:
            raise ValueError(f"{len(self.tokens)} tokens of text are too few for a step of {n} windows of {length}")
        order = np.random.default_rng([seed, step // per_epoch]).permutation(self.n_windows(length))
        chosen = order[step % per_epoch * n :][:n]
        rows = np.stack([self.tokens[i * length : (i + 1) * length + 1] for i in chosen]).astype(np.int64)
        both = torch.from_numpy(rows)
        return both[:, :-1], both[:, 1:]


def encode(documents: Iterable[Document], tokenizer: Tokenizer) -> Stream:
    """The documents one after another, the end token between them."""
    (end,) = tokenizer.eos_ids
    encoded = tokenizer.backend.encode_batch_fast([d.text for d in documents], add_special_tokens=False)
    parts = [np.array([*one.ids, end], dtype=np.uint16) for one in encoded]
    return Stream(np.concatenate(parts) if parts else np.zeros(0, np.uint16))
