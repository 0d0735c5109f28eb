"""n-gram drafts (prompt look-up): find an earlier occurrence of the last few tokens, and propose what followed it.

Code, quotations and structured data repeat themselves, so a look-up in the prompt and the answer is often right, and it
costs no pass of any model (Saxena 2023, "Prompt Lookup Decoding"; Yang et al. 2023, "Inference with Reference"). The
longest match wins, and of equally long ones the latest. A copy that reaches the end of the text goes on with its own
beginning, as in Lempel-Ziv compression, so a repeated pattern is continued.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence

from reference_impl.speculative.drafts import Draft, Wanted


class NgramDraft:
    """A `DraftSource` that looks for the last `longest` tokens, then for one fewer, down to `shortest`.

    Each request has an index of its n-grams that grows with it, so an order takes time for the new tokens only.
    """

    vocab_size = None

    def __init__(self, longest: int = 3, shortest: int = 1) -> None:
        if not 1 <= shortest <= longest:
            raise ValueError(f"needs 1 <= shortest <= longest n-grams, got shortest {shortest} and longest {longest}")
        self.longest, self.shortest = longest, shortest
        self._indexes: dict[Hashable, _Index] = {}

    def propose(self, wanted: Sequence[Wanted]) -> list[list[Draft]]:
        return [[Draft(token) for token in self._continue(order)] for order in wanted]

    def forget(self, request_id: Hashable) -> None:
        self._indexes.pop(request_id, None)

    def _continue(self, order: Wanted) -> list[int]:
        index = self._indexes.setdefault(order.id, _Index())
        index.grow(order.tokens, self.longest, self.shortest)
        for n in range(min(self.longest, len(order.tokens)), self.shortest - 1, -1):
            place = index.after.get(tuple(order.tokens[-n:]))
            if place is not None:
                copied = list(order.tokens[place : place + order.n])
                period = len(order.tokens) - place
                while len(copied) < order.n:
                    copied.append(copied[-period])
                return copied
        return []


class _Index:
    """For each n-gram of a text, the place after its latest occurrence, the end of the text aside."""

    def __init__(self) -> None:
        self.after: dict[tuple[int, ...], int] = {}
        self.n_known = 0  # n-grams that end at or before this place are in `after`

    def grow(self, tokens: Sequence[int], longest: int, shortest: int) -> None:
        for end in range(self.n_known + 1, len(tokens)):
            for n in range(shortest, min(longest, end) + 1):
                self.after[tuple(tokens[end - n : end])] = end
        self.n_known = max(self.n_known, len(tokens) - 1)
