"""How well a model predicts unseen text, in bits per byte, so that models of different tokenizers compare."""

from __future__ import annotations

import math
from collections.abc import Sequence

import torch
from torch.nn import functional as F  # noqa: N812

from reference_impl.checkpoints.tokenizer import Tokenizer
from reference_impl.model.llama import Llama
from reference_impl.training.corpus import Stream
from reference_impl.training.trainer import Windows


@torch.inference_mode()
def bits_per_byte(model: Llama, stream: Stream, tokenizer: Tokenizer, window: int = 512, most: int = 64) -> float:
    """Bits per byte over at most `most` windows, spread evenly over the stream. A window is scored without its past.

    ValueError if the stream is shorter than one window.
    """
    n = stream.n_windows(window)
    if n < 1:
        raise ValueError(f"{len(stream.tokens)} tokens are too few for a window of {window}")
    nats, n_bytes = 0.0, 0
    for i in _spread(n, most):
        row = torch.from_numpy(stream.tokens[i * window : (i + 1) * window + 1].astype("int64"))
        logits = model(Windows(row[None, :-1]))
        nats += F.cross_entropy(logits.double(), row[1:], reduction="sum").item()
        n_bytes += sum(len(tokenizer.token_bytes(t)) for t in row[1:].tolist() if t not in tokenizer.special_ids)
    return nats / math.log(2) / n_bytes


def _spread(n: int, most: int) -> Sequence[int]:
    return range(n) if n <= most else [i * n // most for i in range(most)]
