"""Plans each forward pass: continuous batching, chunked prefill, preemption, first come first served.

The scheduler decides anew in every step (iteration-level scheduling: Yu et al. 2022, "Orca", section 4.1). Running
decodes come first, one token each, so no prompt ever stalls them. The rest of the token budget goes to prompts, oldest
first, cut into chunks where they do not fit (Agrawal et al. 2024, "Sarathi-Serve", section 4). When the cache is full,
the youngest request gives way, so the oldest always advances and none starves (preemption: Kwon et al. 2023, section
4.5).
"""

from __future__ import annotations

import bisect
from collections.abc import Hashable
from typing import TYPE_CHECKING

from reference_impl.engine.config import EngineConfig
from reference_impl.engine.request import RequestState
from reference_impl.engine.step import Chunk, Step
from reference_impl.engine.strategy import DecodingStrategy, PlainDecoding

if TYPE_CHECKING:
    from reference_impl.cache.interface import KVCache
    from reference_impl.cache.offload import Offloader


def _priority(state: RequestState) -> tuple[float, int]:
    return state.priority


class Scheduler:
    """Owns the queue, the running requests and their places in the cache.

    `waiting` and `running` are ordered oldest first.
    """

    def __init__(
        self,
        cache: KVCache,
        config: EngineConfig,
        swap: Offloader | None = None,
        strategy: DecodingStrategy | None = None,
    ) -> None:
        self.cache = cache
        self.config = config
        self.swap = swap
        self.strategy = strategy or PlainDecoding()
        self.waiting: list[RequestState] = []
        self.running: list[RequestState] = []
        self._done: list[RequestState] = []  # finished; in static batching they keep their slot until the batch is done
        self._arriving: set[Hashable] = set()  # running, but their cache is still on its way from the host
        self._blocked = False  # the head of the queue did not fit, and nothing has left or can be shared since

    @property
    def idle(self) -> bool:
        return not (self.waiting or self.running or self._done)

    def add(self, state: RequestState) -> None:
        bisect.insort(self.waiting, state, key=_priority)
        self._blocked = False

    def schedule(self) -> Step | None:
        """The next pass, or None if there is nothing to compute. RuntimeError if a request does not fit even alone."""
        if self.swap is not None and self._arriving:
            self._arriving.difference_update(self.swap.poll())
        step = self._next_step()
        if step is None and self.swap is not None and self._arriving:  # there is nothing to compute in the meantime
            self._arriving.difference_update(self.swap.wait())
            step = self._next_step()
        return step

    def _next_step(self) -> Step | None:
        fresh: list[RequestState] = []
        if self.config.batching == "static" and not (self.running or self._done):
            while (state := self._admit(fresh)) is not None:
                pass
        chunks, preempted, made_room = self._make_room(self._plan())
        if self.config.batching == "continuous" and not made_room:
            budget = self.config.token_budget - sum(len(chunk.tokens) for chunk in chunks)
            while budget > 0 and (state := self._admit(fresh)) is not None:
                if state.id not in self._arriving:
                    chunks.append(self._chunk(state, self.cache.length(state.id), budget))
                    budget -= len(chunks[-1].tokens)
        if not chunks:
            return None
        chunks = self.strategy.extend(chunks, self.cache, self.config.token_budget)
        try:
            batch = self.cache.extend([(chunk.state.id, chunk.tokens) for chunk in chunks])
        except BaseException:
            self._send_back(fresh)
            raise
        return Step(chunks, batch, fresh, preempted)

    def commit(self, step: Step) -> None:
        """The pass succeeded: later requests may share the blocks that it filled."""
        self.cache.commit(step.batch)
        if any(len(chunk.tokens) > 1 for chunk in step.chunks):
            self._blocked = False  # the head of the queue may find its prefix in the cache now

    def abort(self, step: Step) -> None:
        """The pass failed: the cache is as before it, and requests that it admitted go back to the queue."""
        self.cache.abort(step.batch)
        self._send_back(step.fresh)

    def retire(self, state: RequestState) -> None:
        """A running request is finished: frees its blocks. `released` says when its slot is free too."""
        self._drop(state)
        self._done.append(state)

    def released(self) -> list[RequestState]:
        """Finished requests whose slots are free now. In static batching all slots become free together, at the end."""
        if self.config.batching == "static" and self.running:
            return []
        done, self._done = self._done, []
        return done

    def remove(self, state: RequestState) -> None:
        """Drops a request, whether it waits, runs, or is finished and holds its slot. Not during a pass."""
        if state in self._done:
            self._done.remove(state)
        elif state in self.waiting:
            self.waiting.remove(state)
            if state.swapped and self.swap is not None:
                self.swap.free(state.id)
            self._blocked = False
        else:
            self._drop(state)

    def preempt(self, state: RequestState) -> None:
        """Takes a running request's blocks away and puts it back into the queue, with the tokens it has so far."""
        if self.swap is None or self.config.preemption == "recompute":
            self.cache.free(state.id)
        else:
            self._arriving.difference_update(self.swap.wait())
            try:
                self.swap.swap_out(state.id)
                self.swap.wait()  # other requests need the blocks in this pass
                state.swapped = True
            except MemoryError:  # host memory is full too
                self.cache.free(state.id)
        state.n_preemptions += 1
        self.running.remove(state)
        bisect.insort(self.waiting, state, key=_priority)
        self._blocked = False

    def _drop(self, state: RequestState) -> None:
        self.running.remove(state)
        if self.swap is not None and state.id in self._arriving:
            self._arriving.remove(state.id)
            self.swap.free(state.id)
        else:
            self.cache.free(state.id)
        self._blocked = False

    def _is_decode(self, state: RequestState, n_cached: int) -> bool:
        """Whether only its newest token is missing. If not, it is in its prompt, or recomputes after a preemption."""
        return n_cached == len(state.tokens) - 1 and state.n_output > 0

    def _chunk(self, state: RequestState, start: int, budget: int) -> Chunk:
        """The request's tokens from place `start` on, as far as the budget and the chunk size allow."""
        end = min(len(state.tokens), start + min(budget, self.config.chunk_size or budget))
        return Chunk(state, state.tokens[start:end], n_rows=int(end == len(state.tokens)))

    def _plan(self) -> list[Chunk]:
        """The next chunk of each running request: decodes first, then prompts, both oldest first."""
        decodes: list[tuple[RequestState, int]] = []
        prompts: list[tuple[RequestState, int]] = []
        for state in self.running:
            if state.id not in self._arriving:
                n_cached = self.cache.length(state.id)
                (decodes if self._is_decode(state, n_cached) else prompts).append((state, n_cached))
        budget = self.config.token_budget
        chunks = []
        for state, n_cached in decodes + prompts:
            if budget == 0:
                break
            chunks.append(self._chunk(state, n_cached, budget))
            budget -= len(chunks[-1].tokens)
        return chunks

    def _make_room(self, chunks: list[Chunk]) -> tuple[list[Chunk], list[RequestState], bool]:
        """Leaves out the youngest requests until the rest fits: (chunks that fit, preempted requests, any left out?).

        If that makes enough room, a request that is still in its prompt skips this pass and keeps its blocks. Otherwise
        it is preempted.
        """
        preempted: list[RequestState] = []
        waits = False
        while chunks and not self.cache.can_extend([(chunk.state.id, len(chunk.tokens)) for chunk in chunks]):
            youngest = self.running[-1]
            if youngest is self.running[0]:
                raise RuntimeError(
                    f"request {youngest.id!r} has {self.cache.length(youngest.id)} tokens in the cache and no room for "
                    f"{len(chunks[-1].tokens)} more, although nothing else runs"
                )
            if chunks[-1].state is youngest and not self._is_decode(youngest, self.cache.length(youngest.id)):
                waits = True
            else:
                self.preempt(youngest)
                preempted.append(youngest)
            chunks = [chunk for chunk in chunks if chunk.state is not youngest]
        return chunks, preempted, waits or bool(preempted)

    def _admit(self, fresh: list[RequestState]) -> RequestState | None:
        """Moves the head of the queue to the running requests, if there is a slot and room. No request overtakes it.

        Adds it to `fresh` unless it comes back from host memory.
        """
        if not self.waiting or self._blocked or len(self.running) + len(self._done) >= self.config.max_running:
            return None
        state = self.waiting[0]
        swapped = state.swapped
        if not (self._return_from_host(state) if swapped else self._enter(state)):
            if not self.running:
                raise RuntimeError(
                    f"request {state.id!r} has {len(state.tokens)} tokens, and the empty cache has no room"
                )
            self._blocked = True
            return None
        del self.waiting[0]
        bisect.insort(self.running, state, key=_priority)
        if not swapped:
            fresh.append(state)
        return state

    def _enter(self, state: RequestState) -> bool:
        try:
            n_shared = self.cache.add(state.id, state.tokens)
        except MemoryError:
            return False
        if not self._fits(state, len(state.tokens) - n_shared):
            self.cache.free(state.id)
            return False
        if not state.n_preemptions:
            state.n_shared = n_shared
        return True

    def _return_from_host(self, state: RequestState) -> bool:
        assert self.swap is not None
        self.cache.add(state.id)  # only to ask whether it would fit without sharing any block
        fits = self._fits(state, len(state.tokens))
        self.cache.free(state.id)
        if fits:
            self.swap.swap_in(state.id)
            self._arriving.add(state.id)
            state.swapped = False
        return fits

    def _fits(self, state: RequestState, n_tokens: int) -> bool:
        """Whether there is room for `n_tokens`, beside what the running requests still need for the tokens they have.

        Without the second condition a request could be admitted only to be preempted in the next steps.
        """
        promised = [(other.id, len(other.tokens) - self.cache.length(other.id)) for other in self.running]
        return self.cache.can_extend([*promised, (state.id, n_tokens)])

    def _send_back(self, fresh: list[RequestState]) -> None:
        """Takes back admissions, and preempts requests that came from host memory after them in the same step."""
        for state in fresh:
            self.running.remove(state)
            self.cache.free(state.id)
            bisect.insort(self.waiting, state, key=_priority)
            self._blocked = False
        while fresh and self.running and self.running[-1].priority > fresh[0].priority:
            self.preempt(self.running[-1])
