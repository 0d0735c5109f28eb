"""The engine in a thread of its own: requests go in by a queue, outputs come out by a call.

`Engine` belongs to one thread, which steps as long as there is work and sleeps on its inbox when there is none. HTTP
handlers only put things into the inbox, so they never wait for a forward pass.
"""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass

import torch

from reference_impl.cache.paged import PagedCache
from reference_impl.cache.storage import KVStorage
from reference_impl.engine.engine import Engine
from reference_impl.engine.request import FinishReason, Output, Request
from reference_impl.engine.step import StepError
from reference_impl.speculative.speculator import Speculator


@dataclass(frozen=True)
class Snapshot:
    """The engine between two steps: counters since the start, and gauges; blocks are those of a paged cache.

    A request that is in its first step still counts as waiting.
    """

    running: int = 0
    waiting: int = 0
    steps: int = 0
    prefill_tokens: int = 0
    decode_tokens: int = 0
    shared_tokens: int = 0
    preemptions: int = 0
    blocks_used: int = 0  # by sequences
    blocks_evictable: int = 0  # they keep a prefix that no sequence uses
    blocks_free: int = 0
    drafted_tokens: int = 0
    accepted_tokens: int = 0  # of the drafted ones

    @classmethod
    def of(cls, engine: Engine) -> Snapshot:
        used = evictable = free = 0
        if isinstance(engine.cache, PagedCache):
            allocator = engine.cache.allocator
            evictable = allocator.index.n_idle if allocator.index is not None else 0
            free = allocator.free_blocks - evictable
            used = allocator.n_blocks - allocator.free_blocks
        stats = engine.stats
        drafts = engine.strategy.stats if isinstance(engine.strategy, Speculator) else None
        return cls(
            engine.n_running,
            engine.n_waiting,
            stats.n_steps,
            stats.n_prefill_tokens,
            stats.n_decode_tokens,
            stats.n_shared_tokens,
            stats.n_preemptions,
            used,
            evictable,
            free,
            drafts.n_drafted if drafts is not None else 0,
            sum(drafts.accepted) if drafts is not None else 0,
        )


@dataclass(frozen=True)
class _Cancel:
    request_id: Hashable


class _Stop:
    pass


class ServingLoop:
    """Runs an engine until `stop`. `add`, `cancel` and `snapshot` may be used by any thread and return at once.

    `deliver(outputs)` is called in the engine's thread after each step that made outputs. Every added request gets
    exactly one output with a finish, even if it was cancelled or refused, or its step failed.
    """

    def __init__(self, engine: Engine, deliver: Callable[[Sequence[Output]], None]) -> None:
        self.engine = engine
        self.snapshot = Snapshot.of(engine)  # replaced as a whole, never changed
        self._deliver = deliver
        self._inbox: queue.SimpleQueue[Request | _Cancel | _Stop] = queue.SimpleQueue()
        self._open: dict[Hashable, None] = {}  # added and not ended; the engine's thread alone touches it
        self._thread = threading.Thread(target=self._run, name="engine", daemon=True)

    @property
    def alive(self) -> bool:
        return self._thread.is_alive()

    def start(self) -> None:
        self._thread.start()

    def add(self, request: Request) -> None:
        self._inbox.put(request)

    def cancel(self, request_id: Hashable) -> None:
        """Ends a request and frees its blocks. Does nothing if it has ended already."""
        self._inbox.put(_Cancel(request_id))

    def stop(self) -> None:
        """Cancels what is still open and waits for the step under way."""
        self._inbox.put(_Stop())
        if self.alive:
            self._thread.join()

    def _run(self) -> None:
        storage: KVStorage | None = getattr(self.engine.cache, "storage", None)
        if storage is not None and storage.k.is_cuda:
            torch.cuda.set_device(storage.k.device)  # each thread has a current device of its own
        try:
            while self._take_orders():
                if not self.engine.idle:
                    self._publish(self._step())
            self._publish([output for request_id in list(self._open) for output in self._cancel(request_id)])
        except BaseException as error:  # the thread ends here, and no caller may wait forever
            reason = f"the engine stopped: {type(error).__name__}: {error}"
            self._deliver([Output(i, finish=FinishReason.ERROR, reason=reason) for i in self._open])
            raise

    def _take_orders(self) -> bool:
        """Carries out the orders in the inbox, and waits for one if there is no other work. False when told to stop."""
        while True:
            try:
                order = self._inbox.get(block=self.engine.idle)
            except queue.Empty:
                return True
            if isinstance(order, _Stop):
                return False
            self._publish(self._cancel(order.request_id) if isinstance(order, _Cancel) else self._add(order))

    def _add(self, request: Request) -> list[Output]:
        self._open[request.id] = None
        try:
            self.engine.add(request)
        except ValueError as error:
            return [Output(request.id, finish=FinishReason.REFUSED, reason=str(error))]
        except Exception as error:
            return [Output(request.id, finish=FinishReason.ERROR, reason=f"{type(error).__name__}: {error}")]
        return []

    def _cancel(self, request_id: Hashable) -> list[Output]:
        if request_id not in self._open:
            return []
        return [self._end(request_id, FinishReason.CANCELLED, "")]

    def _step(self) -> list[Output]:
        try:
            return self.engine.step()
        except StepError as error:
            return self.engine.fail(error)
        except Exception as error:  # the engine cannot say which request is at fault: give up on all of them
            if not self._open:
                raise  # the engine cannot even be emptied: the thread ends, and `alive` says so
            reason = f"{type(error).__name__}: {error}"
            return [self._end(request_id, FinishReason.ERROR, reason) for request_id in list(self._open)]

    def _end(self, request_id: Hashable, finish: FinishReason, reason: str) -> Output:
        """Takes a request from the engine, and makes its last output even if the engine cannot let go of it."""
        try:
            output = self.engine.cancel(request_id)
        except Exception as error:
            return Output(request_id, finish=FinishReason.ERROR, reason=reason or f"{type(error).__name__}: {error}")
        return Output(request_id, output.tokens, output.text, finish, reason, output.timeline)

    def _publish(self, outputs: Sequence[Output]) -> None:
        """Updates the snapshot before it delivers, so a client that sees an answer end no longer finds it running."""
        for output in outputs:
            if output.finish is not None:
                self._open.pop(output.request_id, None)
        self.snapshot = Snapshot.of(self.engine)
        if outputs:
            self._deliver(outputs)
