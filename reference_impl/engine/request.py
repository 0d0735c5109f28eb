"""A request: what the caller asks for, what the engine remembers while serving it, and what comes back.

Everything that decides the answer belongs to the request itself: its tokens, its own random numbers, its stop rules. So
the answer depends neither on the requests it shares a batch with nor on how often it was preempted.
"""

from __future__ import annotations

import random
from collections.abc import Hashable, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING, Protocol

from reference_impl.decoding.sampling import SamplingParams
from reference_impl.engine.metrics import Timeline
from reference_impl.engine.stopping import StopFinder

if TYPE_CHECKING:
    from torch import Tensor

    from reference_impl.decoding.logprobs import TokenLogprob


class FinishReason(StrEnum):
    STOP = "stop"  # a stop token or stop string
    LENGTH = "length"  # max_tokens, or the context is full
    CANCELLED = "cancelled"
    REFUSED = "refused"  # it can never fit, and nothing was computed
    ERROR = "error"  # this request alone failed (its step went on)


@dataclass(frozen=True)
class Request:
    """What a caller asks for. ValueError, naming the request, if no engine could serve it."""

    id: Hashable
    prompt: tuple[int, ...]  # token ids, at least one
    max_tokens: int | None = 16  # most tokens to generate; None: until the context is full
    sampling: SamplingParams = field(default_factory=SamplingParams)
    stop_tokens: frozenset[int] = frozenset()  # each ends the answer; it counts as generated and is not shown as text
    stop_strings: tuple[str, ...] = ()  # each ends the answer, which is cut before it
    arrival: float | None = None  # seconds on the engine's clock; None: when it is added
    logprobs: int | None = None  # so many of the likeliest tokens are told with each token; None: nothing is told

    def __post_init__(self) -> None:
        for name, kind in (("prompt", tuple), ("stop_tokens", frozenset), ("stop_strings", tuple)):
            value = getattr(self, name)
            if name == "stop_strings" and isinstance(value, str):
                value = (value,)  # otherwise every character would be a stop string
            object.__setattr__(self, name, kind(value))
        if not self.prompt:
            raise ValueError(f"request {self.id!r} has an empty prompt; there is nothing to continue")
        if self.max_tokens is not None and self.max_tokens < 1:
            raise ValueError(f"request {self.id!r} asks for {self.max_tokens} tokens; the least is 1")
        if "" in self.stop_strings:
            raise ValueError(f"request {self.id!r} has an empty stop string")


@dataclass(frozen=True)
class Output:
    """What one step produced for one request."""

    request_id: Hashable
    tokens: tuple[int, ...] = ()  # newly generated
    text: str = ""  # text that can be shown now; it may lag behind the tokens
    finish: FinishReason | None = None
    reason: str = ""  # why it was refused or failed, or the stop string that ended it
    timeline: Timeline | None = None  # with the last output
    logits: Tensor | None = None  # [len(tokens), vocabulary], if the engine keeps them
    logprobs: tuple[TokenLogprob, ...] = ()  # one for each token, if the request asks for them


@dataclass(frozen=True)
class Completion:
    """A whole answer."""

    tokens: tuple[int, ...]
    text: str
    finish: FinishReason
    reason: str
    timeline: Timeline
    logits: Tensor | None = None

    @classmethod
    def of(cls, outputs: Sequence[Output]) -> Completion:
        """Joins all outputs of one request, in order."""
        import torch

        last = outputs[-1]
        if last.finish is None or last.timeline is None:
            raise ValueError(f"request {last.request_id!r} has not ended")
        kept = [output.logits for output in outputs if output.logits is not None]
        return cls(
            tokens=tuple(token for output in outputs for token in output.tokens),
            text="".join(output.text for output in outputs),
            finish=last.finish,
            reason=last.reason,
            timeline=last.timeline,
            logits=torch.cat(kept) if kept else None,
        )


class TextStream(Protocol):
    """Turns token ids into text and never shows half a character (`Tokenizer.stream`)."""

    def push(self, token: int) -> str: ...
    def flush(self) -> str: ...


class RequestState:
    """A request while it is served. Requests are served in order of arrival, then in the order they were added."""

    def __init__(
        self,
        request: Request,
        *,
        arrival: float,
        serial: int,
        seed: int,
        max_total: int,
        stream: TextStream | None = None,
    ) -> None:
        self.request = request
        self.id = request.id
        self.priority = (arrival, serial)  # smaller is older
        self.tokens = list(request.prompt)  # prompt and answer
        self.n_output = 0  # tokens of the answer so far
        self.max_total = max_total  # most tokens, prompt included
        self.timeline = Timeline(arrival)
        self.stream = stream
        self.stop_finder = StopFinder(request.stop_strings)
        self.swapped = False  # its cache lies in host memory
        self.n_preemptions = 0
        self.n_shared = 0  # prompt tokens that were found in the cache when it was first admitted
        self.finish: FinishReason | None = None
        self.reason = ""
        self._seed = seed
        self._random: dict[str, random.Random] = {}
        self._uniforms: dict[str, list[float]] = {}

    def uniform(self, place: int, use: str = "choice") -> float:
        """The random number in [0, 1) that chooses output token `place`: the same one, however often a step is tried.

        Every `use` has independent numbers of its own.
        """
        if use not in self._random:
            self._random[use] = random.Random(self._seed if use == "choice" else f"{use} {self._seed}")
            self._uniforms[use] = []
        drawn = self._uniforms[use]
        while len(drawn) <= place:
            drawn.append(self._random[use].random())
        return drawn[place]

    def accept(self, token: int) -> str:
        """Appends a generated token; returns the text that can be shown now. Sets `finish` if the answer ends here."""
        self.tokens.append(token)
        self.n_output += 1
        text = ""
        if token in self.request.stop_tokens:
            self.finish = FinishReason.STOP
        elif self.stream is not None:
            text = self.stop_finder.feed(self.stream.push(token))
            if self.stop_finder.stopped is not None:
                self.finish, self.reason = FinishReason.STOP, self.stop_finder.stopped
                return text
        if self.finish is None and len(self.tokens) >= self.max_total:
            self.finish = FinishReason.LENGTH
        if self.finish is not None and self.stream is not None:
            text += self.stop_finder.feed(self.stream.flush()) + self.stop_finder.flush()
        return text
