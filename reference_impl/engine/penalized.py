"""The logits of a pass with the penalties that its requests ask for, drafted tokens counted as text."""

from __future__ import annotations

from collections.abc import Sequence

from torch import Tensor

from reference_impl.decoding.penalties import penalize
from reference_impl.engine.step import Chunk


def penalized(logits: Tensor, chunks: Sequence[Chunk]) -> Tensor:
    """Logits [sum of the chunks' n_rows, vocabulary] to choose from; what the model gave stays as it is."""
    if all(chunk.state.request.sampling.penalties is None for chunk in chunks):
        return logits
    changed, row = logits.clone(), 0
    for chunk in chunks:
        wanted, prompt = chunk.state.request.sampling.penalties, chunk.state.request.prompt
        drafts = chunk.tokens[len(chunk.tokens) - chunk.n_rows + 1 :]
        if wanted is not None:
            for i in range(chunk.n_rows):
                penalize(changed, row + i, wanted, prompt, chunk.state.tokens[len(prompt) :] + drafts[:i])
        row += chunk.n_rows
    return changed
