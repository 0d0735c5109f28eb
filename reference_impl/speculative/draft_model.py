"""Drafts by a small model, with a KV cache of its own.

Before it drafts, the model brings its cache up to date with the request's tokens, by one rule for every case. Cached
tokens that agree with them stay, the others (drafts that the target refused) are cut off, and missing ones are
computed. That is the whole prompt at first, one token after a refusal, and two after a full accept, because the last
drafted token was never fed back and the target added one of its own. All requests that need drafts share the draft
model's passes.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from typing import TYPE_CHECKING

import torch
from torch import Tensor
from torch.nn import functional as F  # noqa: N812

from reference_impl.decoding.next_tokens import choose_with_probs
from reference_impl.speculative.drafts import Draft, Wanted

if TYPE_CHECKING:
    from reference_impl.cache.interface import ForwardBatch, KVCache
    from reference_impl.model.llama import Llama

Model = Callable[["ForwardBatch", Tensor], Tensor]  # (batch, rows) -> logits [n_rows, vocabulary]
Chunk = tuple[Hashable, list[int]]


class ModelDraft:
    """A `DraftSource` that draws from a model, with each request's own temperature, top-k and top-p.

    `cache` must have room for at least one request. If it cannot hold all of them, requests take turns and are
    recomputed. No token is drafted beyond `max_context`, and a pass has at most `token_budget` tokens.

    `vocab_size` is the number of logits of a token, which is the target's; `n_embeddings` is the draft's own, where it
    differs: models with one tokenizer may pad their tables to different sizes. Ids that the draft lacks are never
    drafted, and a request that holds one is not drafted for.
    """

    def __init__(
        self,
        model: Model,
        cache: KVCache,
        vocab_size: int,
        max_context: int,
        token_budget: int = 512,
        n_embeddings: int | None = None,
    ) -> None:
        if token_budget < 1:
            raise ValueError(f"token_budget must be at least 1, got {token_budget}")
        self.model = model
        self.cache = cache
        self.vocab_size = vocab_size
        self.n_embeddings = n_embeddings or vocab_size
        self.max_context = min(max_context, cache.capacity)
        self.token_budget = token_budget
        self._held: dict[Hashable, list[int]] = {}  # the tokens in the cache
        self._certain: dict[Hashable, int] = {}  # how many of them are the request's own, not drafts

    @classmethod
    def for_llama(
        cls,
        model: Llama,
        n_blocks: int = 1024,
        block_size: int = 16,
        token_budget: int = 512,
        vocab_size: int | None = None,
    ) -> ModelDraft:
        """A draft with a paged cache, in the model's dtype and on its device. `vocab_size`: the target's, if padded."""
        from reference_impl.cache.paged import PagedCache
        from reference_impl.model.fused import fused
        from reference_impl.model.replay import RecordedPasses

        cache = PagedCache(model.config, n_blocks, block_size, model.embed.dtype, model.embed.device)
        passes = RecordedPasses(fused(model))
        own = model.config.vocab_size
        return cls(passes, cache, vocab_size or own, model.config.max_context, token_budget, own)

    def forget(self, request_id: Hashable) -> None:
        if self._held.pop(request_id, None) is not None:
            del self._certain[request_id]
            self.cache.free(request_id)

    @torch.inference_mode()
    def propose(self, wanted: Sequence[Wanted]) -> list[list[Draft]]:
        drafts: list[list[Draft]] = [[] for _ in wanted]
        self._in_turns([(order, out) for order, out in zip(wanted, drafts, strict=True) if self._most(order) > 0])
        return drafts

    def held(self, request_id: Hashable) -> int:
        """Tokens of a request in the draft's cache; 0 if it has none."""
        return len(self._held.get(request_id, ()))

    def _most(self, order: Wanted) -> int:
        """How many drafts the context has room for. The last one is never fed back to the model."""
        if self.n_embeddings < self.vocab_size and max(order.tokens) >= self.n_embeddings:
            return 0
        return min(order.n, self.max_context - len(order.tokens) + 1)

    def _in_turns(self, orders: list[tuple[Wanted, list[Draft]]]) -> None:
        """Drafts for all if the cache holds them, else without the requests that need nothing now, else in halves."""
        if not orders:
            return
        if not self._make_room([order for order, _ in orders]):
            for request_id in self._held.keys() - {order.id for order, _ in orders}:
                self.forget(request_id)
            if not self._make_room([order for order, _ in orders]):
                if len(orders) > 1:
                    self._in_turns(orders[: len(orders) // 2])
                    self._in_turns(orders[len(orders) // 2 :])
                return
        self._catch_up([order for order, _ in orders])
        chunks = [(order.id, list(order.tokens[self.held(order.id) :])) for order, _ in orders]
        for i in range(max(self._most(order) for order, _ in orders)):
            asking = [(order, out) for order, out in orders if self._most(order) > i]
            if i:
                chunks = [(order.id, [out[-1].token]) for order, out in asking]
            chosen = choose_with_probs(
                self._pass(chunks),
                [order.sampling for order, _ in asking],
                [0.0 if order.sampling.greedy else order.uniform(i) for order, _ in asking],
            )
            for (order, out), (token, probs) in zip(asking, chosen, strict=True):
                self._certain[order.id] = len(order.tokens)
                out.append(Draft(token, probs))

    def _make_room(self, orders: list[Wanted]) -> bool:
        """Cuts off refused drafts and admits new requests. Returns whether the cache has room for these orders."""
        for order in orders:
            if order.id not in self._held:
                try:
                    n_shared = self.cache.add(order.id, order.tokens)
                except MemoryError:
                    return False
                self._held[order.id] = list(order.tokens[:n_shared])
            else:
                self._cut_back(order)
            self._certain[order.id] = self.held(order.id)
        return self.cache.can_extend(
            [(order.id, len(order.tokens) - self.held(order.id) + self._most(order) - 1) for order in orders]
        )

    def _cut_back(self, order: Wanted) -> None:
        held, tokens = self._held[order.id], order.tokens
        same = self._certain[order.id]
        while same < min(len(held), len(tokens) - 1) and held[same] == tokens[same]:
            same += 1
        same = min(same, len(tokens) - 1)  # the last token is computed again, because its logits are needed
        if same < len(held):
            self.cache.truncate(order.id, same)
            del held[same:]

    def _catch_up(self, orders: list[Wanted]) -> None:
        """Computes missing tokens until the rest fits into one pass within the budget."""
        while True:
            missing = [(order.id, list(order.tokens[self.held(order.id) :])) for order in orders]
            surplus = sum(len(new) for _, new in missing) - max(self.token_budget, len(orders))
            chunks: list[Chunk] = []
            left = self.token_budget
            for request_id, new in missing:
                n = min(len(new) - 1, surplus, left)
                if n > 0:
                    chunks.append((request_id, new[:n]))
                    surplus, left = surplus - n, left - n
            if not chunks:
                return
            self._pass(chunks)
            for request_id, new in chunks:
                self._certain[request_id] += len(new)

    def _pass(self, chunks: list[Chunk]) -> Tensor:
        """Logits after the last token of each chunk."""
        batch = self.cache.extend(chunks)
        try:
            logits = self.model(batch, batch.last_rows)
        except BaseException:
            self.cache.abort(batch)
            raise
        self.cache.commit(batch)
        for request_id, new in chunks:
            self._held[request_id] += new
        return _resized(logits, self.vocab_size)


def _resized(logits: Tensor, size: int) -> Tensor:
    """Logits [n, size]: the padding of a larger table is cut off, and ids that a smaller one lacks are impossible."""
    missing = size - logits.shape[-1]
    return logits[:, :size] if missing <= 0 else F.pad(logits, (0, missing), value=-torch.inf)
