"""From the engine's outputs to OpenAI API replies: one JSON object, or a stream of server-sent events.

A stream is the same reply in pieces, one for each output that has something to show, so both are made of the same
parts. After OpenAI's API reference, "Completions" and "Chat Completions"; events as in the WHATWG HTML standard,
section 9.2.
"""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from typing import Any

from reference_impl.engine.request import FinishReason, Output
from reference_impl.server.calls import Call
from reference_impl.server.dispatch import ENDED_WELL, Answers
from reference_impl.server.fields import ApiError

DONE = b"data: [DONE]\n\n"
STREAM_OBJECT = {"completion": "text_completion", "chat": "chat.completion.chunk"}
WHOLE_OBJECT = {"completion": "text_completion", "chat": "chat.completion"}


@dataclass
class Choice:
    """One answer of a call, as far as it has come."""

    text: list[str] = field(default_factory=list)
    n_tokens: int = 0
    finish: FinishReason | None = None

    def take(self, output: Output) -> None:
        """ApiError if the output says that the request failed."""
        self.text.append(output.text)
        self.n_tokens += len(output.tokens)
        self.finish = output.finish
        if output.finish is not None and output.finish not in ENDED_WELL:
            raise failure(output)


def failure(output: Output) -> ApiError:
    """The error reply for a request that did not get to its end."""
    if output.finish == FinishReason.REFUSED:
        return ApiError(output.reason, code="invalid_value")
    if output.finish == FinishReason.CANCELLED:
        return shutting_down()
    return ApiError(f"the engine failed: {output.reason}", code="engine_error", status=500, kind="server_error")


def shutting_down() -> ApiError:
    return ApiError("the server is shutting down", code="shutting_down", status=503, kind="server_error")


def dumps(body: dict[str, Any]) -> bytes:
    """JSON in ASCII: no character in it can be taken for the end of a line, and half a surrogate pair does no harm."""
    return json.dumps(body, separators=(",", ":")).encode("ascii")


def event(body: dict[str, Any]) -> bytes:
    return b"data: " + dumps(body) + b"\n\n"


async def whole_reply(call: Call, answers: Answers, created: int) -> dict[str, Any]:
    """All choices once they are complete. ApiError if one of them failed."""
    choices = [Choice() for _ in call.requests]
    async for place, output in answers:
        choices[place].take(output)
    bodies = []
    for place, choice in enumerate(choices):
        text = "".join(choice.text)
        if call.kind == "chat":
            content: dict[str, Any] = {"message": {"role": "assistant", "content": text, "refusal": None}}
        else:
            content = {"text": text}
        bodies.append(_choice(place, content, choice.finish))
    head = _head(call, created, WHOLE_OBJECT[call.kind])
    return head | {"choices": bodies, "usage": _usage(call, choices)}


async def stream_reply(call: Call, answers: Answers, created: int) -> AsyncIterator[bytes]:
    """The events of a streamed reply. The first is ready with the first output, so an ApiError of a request that never
    got anywhere can still become a status; later the error is an event, and the last one.
    """
    choices = [Choice() for _ in call.requests]
    head = _head(call, created, STREAM_OBJECT[call.kind])
    if call.include_usage:
        head["usage"] = None
    n_sent = 0
    begun: set[int] = set()
    async for place, output in answers:
        try:
            choices[place].take(output)
        except ApiError as error:
            if not n_sent:
                raise
            yield event(error.body())
            return
        for body in _pieces(call, place, output, first=place not in begun):
            yield event(head | {"choices": [body]})
            n_sent += 1
        begun.add(place)
    if call.include_usage:
        yield event(head | {"choices": [], "usage": _usage(call, choices)})
    yield DONE


def _pieces(call: Call, place: int, output: Output, first: bool) -> list[dict[str, Any]]:
    """What an output adds to a streamed choice; nothing if there is nothing to see."""
    if call.kind == "completion":
        if output.text or output.finish is not None:
            return [_choice(place, {"text": output.text}, output.finish)]
        return []
    pieces = []
    if first:
        pieces.append(_choice(place, {"delta": {"role": "assistant", "content": ""}}, None))
    if output.text:
        pieces.append(_choice(place, {"delta": {"content": output.text}}, None))
    if output.finish is not None:
        pieces.append(_choice(place, {"delta": {}}, output.finish))
    return pieces


def _head(call: Call, created: int, kind: str) -> dict[str, Any]:
    return {"id": call.id, "object": kind, "created": created, "model": call.model}


def _choice(place: int, content: dict[str, Any], finish: FinishReason | None) -> dict[str, Any]:
    return {"index": place} | content | {"logprobs": None, "finish_reason": None if finish is None else finish.value}


def _usage(call: Call, choices: list[Choice]) -> dict[str, int]:
    n_answer = sum(choice.n_tokens for choice in choices)
    return {
        "prompt_tokens": call.n_prompt_tokens,
        "completion_tokens": n_answer,
        "total_tokens": call.n_prompt_tokens + n_answer,
    }
