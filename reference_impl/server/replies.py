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

from reference_impl.decoding.logprobs import TokenLogprob
from reference_impl.engine.request import FinishReason, Output, Request
from reference_impl.server.calls import Call
from reference_impl.server.dispatch import ENDED_WELL, Answers
from reference_impl.server.fields import ApiError
from reference_impl.server.logprobs import for_chat, for_completion

DONE = b"data: [DONE]\n\n"
STREAM_OBJECT = {"completion": "text_completion", "chat": "chat.completion.chunk"}
WHOLE_OBJECT = {"completion": "text_completion", "chat": "chat.completion"}


@dataclass
class Choice:
    """One answer of a call, as far as it has come."""

    request: Request
    text: list[str] = field(default_factory=list)
    n_tokens: int = 0
    finish: FinishReason | None = None
    logprobs: list[TokenLogprob] = field(default_factory=list)
    n_told: int = 0  # of `logprobs`, those that a stream has sent
    offset: int = 0  # characters of their tokens

    def take(self, output: Output) -> None:
        """ApiError if the output says that the request failed."""
        self.logprobs += [one for one in output.logprobs if one.token not in self.request.stop_tokens]
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
    choices = [Choice(request) for request in call.requests]
    async for place, output in answers:
        choices[place].take(output)
    bodies = []
    for place, choice in enumerate(choices):
        text = "".join(choice.text)
        if call.kind == "chat":
            content: dict[str, Any] = {"message": {"role": "assistant", "content": text, "refusal": None}}
        else:
            content = {"text": text}
        bodies.append(_choice(place, content, choice.finish, _told(call, choice)))
    head = _head(call, created, WHOLE_OBJECT[call.kind])
    return head | {"choices": bodies, "usage": _usage(call, choices)}


async def stream_reply(call: Call, answers: Answers, created: int) -> AsyncIterator[bytes]:
    """The events of a streamed reply. The first is ready with the first output, so an ApiError of a request that never
    got anywhere can still become a status; later the error is an event, and the last one.
    """
    choices = [Choice(request) for request in call.requests]
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
        for body in _pieces(call, place, choices[place], output, first=place not in begun):
            yield event(head | {"choices": [body]})
            n_sent += 1
        begun.add(place)
    if call.include_usage:
        yield event(head | {"choices": [], "usage": _usage(call, choices)})
    yield DONE


def _pieces(call: Call, place: int, choice: Choice, output: Output, first: bool) -> list[dict[str, Any]]:
    """What an output adds to a streamed choice; nothing if there is nothing to see."""
    told = _told(call, choice)
    if call.kind == "completion":
        if output.text or output.finish is not None or told is not None:
            return [_choice(place, {"text": output.text}, output.finish, told)]
        return []
    pieces = []
    if first:
        pieces.append(_choice(place, {"delta": {"role": "assistant", "content": ""}}, None))
    if output.text or told is not None:
        pieces.append(_choice(place, {"delta": {"content": output.text}}, None, told))
    if output.finish is not None:
        pieces.append(_choice(place, {"delta": {}}, output.finish))
    return pieces


def _head(call: Call, created: int, kind: str) -> dict[str, Any]:
    return {"id": call.id, "object": kind, "created": created, "model": call.model}


def _told(call: Call, choice: Choice) -> dict[str, Any] | None:
    """The log-probabilities that a choice has not sent yet; None if there are none."""
    found = choice.logprobs[choice.n_told :]
    if not found:
        return None
    choice.n_told += len(found)
    if call.kind == "chat":
        return for_chat(found, call.token_bytes)
    told = for_completion(found, call.token_bytes, choice.offset)
    choice.offset += sum(map(len, told["tokens"]))
    return told


def _choice(
    place: int, content: dict[str, Any], finish: FinishReason | None, logprobs: dict[str, Any] | None = None
) -> dict[str, Any]:
    ending = {"logprobs": logprobs, "finish_reason": None if finish is None else finish.value}
    return {"index": place} | content | ending


def _usage(call: Call, choices: list[Choice]) -> dict[str, int]:
    n_answer = sum(choice.n_tokens for choice in choices)
    return {
        "prompt_tokens": call.n_prompt_tokens,
        "completion_tokens": n_answer,
        "total_tokens": call.n_prompt_tokens + n_answer,
    }
