"""Open-loop load: sends each request when its time has come, whether or not earlier ones have been answered.

Users do not wait for each other. A generator that waits for answers (closed loop) slows down together with the server
and hides the queueing that it should measure. For the same reason latency counts from the planned arrival, not from the
moment at which this process sent the request; to count from there is called coordinated omission. The generator's own
lateness is recorded beside it. Any server with the interface of the OpenAI API will do.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

import httpx

from reference_impl.common.clock import Clock
from reference_impl.engine.metrics import Timeline
from reference_impl.loadtest.sse import read_events
from reference_impl.loadtest.workload import Planned

REASONING = ("reasoning_content", "reasoning")  # where servers put the words before the answer
ENDED_WELL = ("stop", "length", "tool_calls", "function_call", "eos_token", "stop_sequence")

Endpoint = Literal["completions", "chat"]


@dataclass
class Record:
    """What became of one request.

    `outcome`: "completed", "cancelled", "interrupted" where the load test was stopped, or the kind of its error.
    """

    planned: Planned
    timeline: Timeline  # its arrival is the planned one
    sent: float | None = None  # on the run's clock
    outcome: str = ""
    detail: str = ""  # the first words of an error
    prompt_tokens: int | None = None  # as the server counts
    answered: float | None = None  # on the run's clock: when the answer itself began, after any reasoning

    @property
    def time_to_answer(self) -> float | None:
        """Seconds from arrival to the first text of the answer itself; TTFT counts reasoning too."""
        return None if self.answered is None else self.answered - self.timeline.arrival

    @property
    def lag(self) -> float | None:
        """Seconds that this process was late in sending."""
        return None if self.sent is None else self.sent - self.timeline.arrival


async def run_load(
    plan: Sequence[Planned],
    send: Callable[[Record], Awaitable[None]],
    clock: Clock,
    sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    on_end: Callable[[Record], None] = lambda record: None,
) -> list[Record]:
    """Sends each planned request at its time, and waits for the last answer.

    `send` fills in the record and raises nothing. If this is cancelled, requests under way end as "interrupted" and go
    to `on_end` like all others; those whose time had not come do not.
    """
    start = clock()

    async def one(record: Record) -> None:
        record.sent = clock()
        try:
            await send(record)
        except asyncio.CancelledError:
            record.outcome = "interrupted"
            record.timeline.close(clock(), completed=False)
            raise
        finally:
            on_end(record)

    records = [Record(planned, Timeline(start + planned.at)) for planned in plan]
    async with asyncio.TaskGroup() as group:
        for record in records:
            wait = record.timeline.arrival - clock()
            if wait > 0:
                await sleep(wait)
            group.create_task(one(record))
    return records


@dataclass(frozen=True)
class Target:
    """The server and how to ask it. `url` without /v1; `timeout` in seconds for a whole answer."""

    url: str
    model: str
    endpoint: Endpoint = "completions"
    temperature: float = 0.0
    ignore_eos: bool = False  # an extension that vLLM, SGLang and this course's server have
    timeout: float = 600.0
    headers: dict[str, str] = field(default_factory=dict)

    @property
    def address(self) -> str:
        return f"{self.url}/v1/{'chat/completions' if self.endpoint == 'chat' else 'completions'}"

    def body(self, planned: Planned) -> dict[str, Any]:
        asked: dict[str, Any] = {"prompt": planned.prompt}
        if self.endpoint == "chat":
            asked = {"messages": [{"role": "user", "content": planned.prompt}]}
        if self.ignore_eos:
            asked["ignore_eos"] = True
        return asked | {
            "model": self.model,
            "max_tokens": planned.max_tokens,
            "temperature": self.temperature,
            "stream": True,
            "stream_options": {"include_usage": True},
        }


class _BadReplyError(Exception):
    """The server answered, but not with a whole answer. Arguments: the kind of error, and its words."""


@dataclass
class _Stream:
    """What one streamed answer has brought so far."""

    times: list[float] = field(default_factory=list)  # of chunks that show text
    n_tokens: int | None = None  # as the server counts
    n_prompt: int | None = None
    finish: str | None = None
    answered: float | None = None  # when the answer itself began

    def take(self, data: str, now: float) -> None:
        try:
            body = json.loads(data)
            error = body.get("error")
            for choice in body.get("choices") or ():
                delta = choice.get("delta") or {}
                answer = choice.get("text") or delta.get("content")
                if answer and self.answered is None:
                    self.answered = now
                if answer or any(delta.get(name) for name in REASONING):
                    self.times.append(now)
                self.finish = choice.get("finish_reason") or self.finish
            usage = body.get("usage") or {}
            self.n_tokens = usage.get("completion_tokens", self.n_tokens)
            self.n_prompt = usage.get("prompt_tokens", self.n_prompt)
        except (ValueError, AttributeError) as problem:
            raise _BadReplyError("bad event", f"{problem}: {data[:80]}") from None
        if error:
            raise _BadReplyError("error event", str(error.get("message", error) if isinstance(error, dict) else error))

    def fill(self, timeline: Timeline) -> None:
        """A chunk counts as a token, unless the server's own count says more.

        The others then came with the last chunk shown, but for the token that ended the answer, which shows nothing.
        """
        extra = max(0, (self.n_tokens or 0) - len(self.times))
        unseen = min(extra, 1) if self.finish == "stop" else 0
        for i, time in enumerate(self.times):
            last = i == len(self.times) - 1
            timeline.add(time, 1 + (extra - unseen if last else 0))
        if self.times and unseen:
            timeline.add(self.times[-1], unseen, visible=False)
        elif not self.times and extra:
            timeline.add(timeline.arrival, extra, visible=False)


class Sender:
    """Sends requests to one target. Whatever happens becomes the record's outcome."""

    def __init__(self, target: Target, http: httpx.AsyncClient, clock: Clock) -> None:
        self.target = target
        self.http = http
        self.clock = clock

    async def __call__(self, record: Record) -> None:
        stream = _Stream()
        try:
            async with asyncio.timeout(self.target.timeout), asyncio.timeout(record.planned.cancel_after) as given_up:
                await self._read(record.planned, stream)
            record.outcome = "completed"
        except TimeoutError:
            record.outcome = "cancelled" if given_up.expired() else "timeout"
        except _BadReplyError as error:
            record.outcome, record.detail = error.args
        except httpx.ConnectError as error:
            record.outcome, record.detail = "connection", str(error)
        except httpx.TransportError as error:
            record.outcome, record.detail = "broken stream", f"{type(error).__name__} {error}"
        except Exception as error:  # one bad reply must not cost the records of all others
            record.outcome, record.detail = "bad reply", f"{type(error).__name__} {error}"
        finally:
            record.prompt_tokens, record.answered = stream.n_prompt, stream.answered
            stream.fill(record.timeline)
        record.timeline.close(self.clock(), completed=record.outcome == "completed")

    async def _read(self, planned: Planned, stream: _Stream) -> None:
        target = self.target
        async with self.http.stream(
            "POST", target.address, json=target.body(planned), headers=target.headers
        ) as response:
            if response.status_code != 200:
                raise _BadReplyError(
                    f"http {response.status_code}", (await response.aread())[:200].decode(errors="replace")
                )
            async for data in read_events(response.aiter_bytes()):
                if data == "[DONE]":
                    break
                stream.take(data, self.clock())
        if stream.finish is None:
            raise _BadReplyError("broken stream", "it ended without a finish_reason")
        if stream.finish not in ENDED_WELL:
            raise _BadReplyError("failed answer", f"it ended with finish_reason {stream.finish!r}")


def open_client() -> httpx.AsyncClient:
    """A client that neither queues nor uses a proxy, and has no time limit but the target's."""
    return httpx.AsyncClient(
        limits=httpx.Limits(max_connections=None, max_keepalive_connections=None), timeout=None, trust_env=False
    )


async def first_model(url: str, headers: dict[str, str] | None = None) -> str:
    """The name of the first model that the server has. ValueError, naming the address, if it does not say."""
    address = f"{url}/v1/models"
    try:
        async with open_client() as http, asyncio.timeout(10):
            response = await http.get(address, headers=headers)
            response.raise_for_status()
            return str(response.json()["data"][0]["id"])
    except TimeoutError:
        raise ValueError(f"{address}: no answer within 10 s") from None
    except (httpx.HTTPError, httpx.InvalidURL) as error:
        raise ValueError(f"{address}: {error}") from None
    except (ValueError, KeyError, IndexError, TypeError):
        raise ValueError(f"{address}: does not list models as the OpenAI API does; give --model") from None
