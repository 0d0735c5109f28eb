"""Between HTTP and the engine: admits requests, and gives each output to the call that it belongs to.

Everything here happens in the event loop's thread, so nothing needs a lock. Only `ServingLoop`'s inbox and
`call_soon_threadsafe` cross to the engine's thread and back. An endless queue would turn overload into waiting for
everybody, so beyond a limit a call is refused at once and told when to come again.
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import AsyncIterator, Hashable, Sequence
from typing import Protocol

from reference_impl.engine.engine import Engine
from reference_impl.engine.request import FinishReason, Output, Request
from reference_impl.server.serving_loop import ServingLoop

ENDED_WELL = (FinishReason.STOP, FinishReason.LENGTH)


class OverloadError(Exception):
    """No room for this call now. `retry_after`: seconds until there should be."""

    def __init__(self, message: str, retry_after: int) -> None:
        super().__init__(message)
        self.retry_after = retry_after


class StoppedError(Exception):
    """The engine's thread is not running, so nothing can be served."""


class Observer(Protocol):
    """Counts what happens (`server.metrics`)."""

    def accepted(self, request: Request) -> None: ...
    def overloaded(self, n_requests: int) -> None: ...
    def delivered(self, output: Output) -> None: ...


class Answers:
    """The outputs of one call's requests. Iterate, then `close`, which cancels the requests that have not ended."""

    def __init__(self, dispatcher: Dispatcher, requests: Sequence[Request]) -> None:
        self._dispatcher = dispatcher
        self._places = {request.id: place for place, request in enumerate(requests)}
        self._unfinished = set(self._places)
        self._arrived: asyncio.Queue[Output] = asyncio.Queue()

    async def __aiter__(self) -> AsyncIterator[tuple[int, Output]]:
        """(place of the request in the call, its next output), until all have ended."""
        while self._unfinished:
            output = await self._arrived.get()
            if output.finish is not None:
                self._unfinished.discard(output.request_id)
            yield self._places[output.request_id], output

    def put(self, output: Output) -> None:
        self._arrived.put_nowait(output)

    def close(self) -> None:
        for request_id in self._unfinished:
            self._dispatcher.cancel(request_id)


class Dispatcher:
    """Admits requests, at most `max_running` + `queue_limit` at a time, and hands their outputs to the callers."""

    def __init__(self, engine: Engine, queue_limit: int, observer: Observer) -> None:
        self.engine = engine
        self.most_open = engine.config.max_running + queue_limit
        self.serving = ServingLoop(engine, self._from_engine)
        self._observer = observer
        self._answers: dict[Hashable, Answers] = {}  # accepted and not ended
        self._latency = 0.0  # seconds, running mean over the answers that ended
        self._loop: asyncio.AbstractEventLoop | None = None

    @property
    def n_running(self) -> int:
        return self.serving.snapshot.running

    @property
    def n_waiting(self) -> int:
        """Accepted and not running: in the engine's queue or still on the way there."""
        return max(0, len(self._answers) - self.n_running)

    async def start(self) -> None:
        self._loop = asyncio.get_running_loop()
        self.serving.start()

    async def stop(self) -> None:
        """Ends what is still open and waits for the engine's thread."""
        await asyncio.to_thread(self.serving.stop)

    def submit(self, requests: Sequence[Request]) -> Answers:
        """Takes all of them or none.

        OverloadError if there is no room now, ValueError if there is none ever, StoppedError without an engine.
        """
        if not self.serving.alive:
            raise StoppedError("the engine has stopped")
        if len(requests) > self.most_open:
            raise ValueError(f"{len(requests)} answers in one call, but this server takes {self.most_open} at most")
        if len(self._answers) + len(requests) > self.most_open:
            self._observer.overloaded(len(requests))
            raise OverloadError(
                f"{len(self._answers)} requests are being served or waiting, and this server takes "
                f"{self.most_open} at most: try again later",
                self._retry_after(len(requests)),
            )
        answers = Answers(self, requests)
        for request in requests:
            self._answers[request.id] = answers
            self._observer.accepted(request)
            self.serving.add(request)
        return answers

    def cancel(self, request_id: Hashable) -> None:
        if request_id in self._answers:
            self.serving.cancel(request_id)

    def _retry_after(self, n_places: int) -> int:
        """Whole seconds, 1 to 60, until `n_places` are free. Little's law: requests leave at open / latency."""
        return min(60, max(1, math.ceil(n_places * self._latency / len(self._answers))))

    def _from_engine(self, outputs: Sequence[Output]) -> None:
        """In the engine's thread."""
        assert self._loop is not None
        try:
            self._loop.call_soon_threadsafe(self._hand_out, outputs)
        except RuntimeError:  # the event loop is closed, so no call is waiting
            if not self._loop.is_closed():
                raise

    def _hand_out(self, outputs: Sequence[Output]) -> None:
        for output in outputs:
            self._observer.delivered(output)
            answers = self._answers[output.request_id]
            if output.finish is not None:
                del self._answers[output.request_id]
                latency = output.timeline.latency if output.timeline is not None else None
                if output.finish in ENDED_WELL and latency is not None:
                    self._latency += (latency - self._latency) * (0.1 if self._latency else 1.0)
            answers.put(output)
