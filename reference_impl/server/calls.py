"""From an OpenAI API body to the engine's requests: /v1/completions and /v1/chat/completions.

Everything that can be wrong with a call is found here, before anything is queued, so an accepted call can only fail
together with the engine. After OpenAI's API reference, "Completions" and "Chat Completions"; `top_k` and `ignore_eos`
are extensions that vLLM and SGLang have too.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, Protocol

from reference_impl.decoding.penalties import Penalties
from reference_impl.decoding.sampling import SamplingParams
from reference_impl.engine.request import Request
from reference_impl.server.fields import ApiError, Fields, valid_text, wrong_type

Kind = Literal["completion", "chat"]
MOST_CHOICES = 128  # n
MOST_STOPS = 16
MOST_TOKENS = 10**9
MOST_LOGPROBS = 20
MOST_BIASED = 1024  # tokens of logit_bias
LEAST_REPETITION = 0.01
COMPLETION_TOKENS = 16  # the API's default of max_tokens for completions; chat has none

# Parameters of the API that this server does not have, with the values that ask for nothing.
UNSUPPORTED: dict[str, tuple[Any, ...]] = {
    # Extensions of other servers, which clients send with the values that do nothing.
    "length_penalty": (1, 1.0),
    "min_tokens": (0,),
    "stop_token_ids": ([],),
    "skip_special_tokens": (True,),
}
UNSUPPORTED_COMPLETION: dict[str, tuple[Any, ...]] = {
    "best_of": (1,),
    "echo": (False,),
    "suffix": ("",),
}
UNSUPPORTED_CHAT: dict[str, tuple[Any, ...]] = {
    "response_format": ({"type": "text"},),
    "tools": ([],),
    "tool_choice": ("none", "auto"),
    "functions": ([],),
    "function_call": ("none", "auto"),
    "parallel_tool_calls": (True, False),
    "modalities": (["text"],),
    "verbosity": ("medium",),
}
NOTES = ("user", "metadata", "store", "safety_identifier", "service_tier", "prompt_cache_key")  # the provider's affair


class ChatTokenizer(Protocol):
    """What the API asks of a tokenizer."""

    eos_ids: frozenset[int]
    longest_token: int  # bytes

    def token_bytes(self, token: int) -> bytes: ...
    def encode(self, text: str) -> list[int]: ...
    def apply_chat_template(self, messages: Sequence[Mapping[str, str]]) -> list[int]: ...


@dataclass(frozen=True)
class Call:
    """One HTTP call: the engine's requests, choice `i` of the reply being `requests[i]`, and how to reply."""

    id: str
    kind: Kind
    model: str
    requests: tuple[Request, ...]
    n_prompt_tokens: int  # each prompt once, however many choices it has
    stream: bool
    include_usage: bool
    token_bytes: Callable[[int], bytes]
    ignored: tuple[str, ...] = ()  # unknown parameters


@dataclass(frozen=True)
class Reader:
    """Knows the model that calls must name.

    `refusal` says why the engine could never serve a request; a call may make `most_requests` of them.
    """

    model: str
    tokenizer: ChatTokenizer
    max_context: int
    refusal: Callable[[Request], str | None]
    most_requests: int
    strict: bool = False  # unknown parameters are errors

    def read(self, kind: Kind, call_id: str, body: dict[str, Any], arrival: float) -> Call:
        """Raises ApiError. `arrival`: of the call, in seconds on the engine's clock."""
        fields = Fields(body)
        self.require_model(fields.text("model"))
        param = "prompt" if kind == "completion" else "messages"
        n_choices = fields.integer("n", 1, 1, MOST_CHOICES) or 1
        given = fields.take(param)
        self._require_few(given, n_choices, param)  # before a prompt is turned into tokens
        prompts = self._prompts(given) if kind == "completion" else [self._chat(given)]
        max_tokens = _max_tokens(fields, kind)
        seed = fields.integer("seed", None, -(2**63), 2**63 - 1)
        temperature = fields.number("temperature", 1.0, 0.0, 2.0)
        top_p = fields.number("top_p", 1.0, 0.0, 1.0)
        top_k = max(0, fields.integer("top_k", 0, -1, 2**31) or 0)  # vLLM's -1: no limit
        min_p = fields.number("min_p", 0.0, 0.0, 1.0)
        penalties = _penalties(fields)
        logprobs = _logprobs(fields, kind)
        stop_strings = _stops(fields.take("stop"))
        stop_tokens = frozenset() if fields.boolean("ignore_eos") else self.tokenizer.eos_ids
        stream = fields.boolean("stream")
        include_usage = _include_usage(fields.take("stream_options"), stream)
        ignored = _refuse_unsupported(fields, kind)
        if self.strict:
            fields.nothing_left()

        requests: list[Request] = []
        for prompt in prompts:
            for choice in range(n_choices):
                params = SamplingParams(temperature, top_k, top_p, _seed_of_choice(seed, choice), min_p, penalties)
                request_id = f"{call_id}-{len(requests)}"
                request = Request(request_id, prompt, max_tokens, params, stop_tokens, stop_strings, arrival, logprobs)
                self._require_possible(request, param)
                requests.append(request)
        return Call(
            id=call_id,
            kind=kind,
            model=self.model,
            requests=tuple(requests),
            n_prompt_tokens=sum(map(len, prompts)),
            stream=stream,
            include_usage=include_usage,
            token_bytes=self.tokenizer.token_bytes,
            ignored=ignored,
        )

    def _require_few(self, given: Any, n_choices: int, param: str) -> None:
        several = param == "prompt" and _is_several(given)
        n_requests = n_choices * (len(given) if several else 1)
        if n_requests > self.most_requests:
            message = f"{n_requests} answers in one call, but this server takes {self.most_requests} at most"
            raise ApiError(message, param if several else "n", "invalid_value")

    def require_model(self, name: str | None) -> None:
        if name is None:
            raise ApiError("a model must be named", "model", "missing_required_parameter")
        if name != self.model:
            message = f"the model {name!r} does not exist; this server has {self.model!r}"
            raise ApiError(message, "model", "model_not_found", 404)

    def _prompts(self, value: Any) -> list[tuple[int, ...]]:
        """A string, token ids, or an array of either."""
        if value is None:
            raise ApiError("a prompt is required", "prompt", "missing_required_parameter")
        prompts = [self._prompt(item) for item in (value if _is_several(value) else [value])]
        if not all(prompts):
            raise ApiError("a prompt has no tokens: there is nothing to continue", "prompt", "invalid_value")
        return prompts

    def _prompt(self, value: Any) -> tuple[int, ...]:
        if isinstance(value, str):
            self._require_short([valid_text(value, "prompt")], "prompt")
            return tuple(self.tokenizer.encode(value))
        if isinstance(value, list) and all(isinstance(token, int) and not isinstance(token, bool) for token in value):
            return tuple(value)
        raise wrong_type("prompt", "a string, an array of token ids, or an array of either", value)

    def _chat(self, value: Any) -> tuple[int, ...]:
        if not isinstance(value, list) or not value:
            raise wrong_type("messages", "a non-empty array", value)
        messages = [_message(item, f"messages[{place}]") for place, item in enumerate(value)]
        self._require_short([message["content"] for message in messages], "messages")
        try:
            return tuple(self.tokenizer.apply_chat_template(messages))
        except ValueError as error:
            raise ApiError(str(error), "messages", "invalid_value") from None

    def _require_short(self, texts: Sequence[str], param: str) -> None:
        """Refuses what cannot fit before it is tokenized, which takes a second for each megabyte."""
        n_bytes, most = sum(len(text.encode()) for text in texts), self.max_context * self.tokenizer.longest_token
        if n_bytes > most:
            raise ApiError(
                f"{param} has {n_bytes:,} bytes of text, but the model's context of {self.max_context:,} tokens holds "
                f"{most:,} at most",
                param,
                "context_length_exceeded",
            )

    def _require_possible(self, request: Request, param: str) -> None:
        reason = self.refusal(request)
        if reason is not None:
            too_long = len(request.prompt) + (request.max_tokens or 1) > self.max_context
            raise ApiError(reason, param, "context_length_exceeded" if too_long else "invalid_value")


def _seed_of_choice(seed: int | None, choice: int) -> int | None:
    """Each choice has random numbers of its own; the first those of the seed. (Neighbouring seeds share none.)"""
    return seed if seed is None or choice == 0 else random.Random(f"{seed} {choice}").getrandbits(63)


def _max_tokens(fields: Fields, kind: Kind) -> int | None:
    if kind == "completion":
        return fields.integer("max_tokens", COMPLETION_TOKENS, 1, MOST_TOKENS)
    old = fields.integer("max_tokens", None, 1, MOST_TOKENS)
    new = fields.integer("max_completion_tokens", None, 1, MOST_TOKENS)
    if old is not None and new is not None and old != new:
        raise ApiError(
            f"max_tokens is {old} and max_completion_tokens is {new}: give one", "max_tokens", "invalid_value"
        )
    return new if old is None else old


def _penalties(fields: Fields) -> Penalties | None:
    """None if nothing is asked for, which costs nothing in a step."""
    wanted = Penalties(
        presence=fields.number("presence_penalty", 0.0, -2.0, 2.0),
        frequency=fields.number("frequency_penalty", 0.0, -2.0, 2.0),
        repetition=fields.number("repetition_penalty", 1.0, LEAST_REPETITION, 2.0),
        bias=_bias(fields.take("logit_bias")),
    )
    return None if wanted == Penalties() else wanted


def _bias(value: Any) -> tuple[tuple[int, float], ...]:
    if value is None:
        return ()
    if not isinstance(value, dict):
        raise wrong_type("logit_bias", "an object of token ids and numbers", value)
    if len(value) > MOST_BIASED:
        raise ApiError(f"logit_bias must name at most {MOST_BIASED} tokens", "logit_bias", "invalid_value")
    for token in value:
        if not (token.isascii() and token.isdigit() and len(token) <= 10):
            raise ApiError(f"logit_bias: {token[:40]!r} is no token id", "logit_bias", "invalid_value")
    each = Fields({f"logit_bias.{int(token)}": number for token, number in value.items()})
    return tuple((int(token), each.number(f"logit_bias.{int(token)}", 0.0, -100.0, 100.0)) for token in value)


def _logprobs(fields: Fields, kind: Kind) -> int | None:
    """How many likely tokens are told beside each token of the answer; None tells nothing."""
    if kind == "completion":
        return fields.integer("logprobs", None, 0, MOST_LOGPROBS)
    asked, n_top = fields.boolean("logprobs"), fields.integer("top_logprobs", None, 0, MOST_LOGPROBS)
    if n_top and not asked:
        raise ApiError("top_logprobs needs logprobs: true", "top_logprobs", "invalid_value")
    return (n_top or 0) if asked else None


def _stops(value: Any) -> tuple[str, ...]:
    stops = [] if value is None else [value] if isinstance(value, str) else value
    if not isinstance(stops, list) or not all(isinstance(stop, str) for stop in stops):
        raise wrong_type("stop", "a string or an array of strings", value)
    if len(stops) > MOST_STOPS or "" in stops:
        raise ApiError(f"stop must be at most {MOST_STOPS} strings, none of them empty", "stop", "invalid_value")
    return tuple(valid_text(stop, "stop") for stop in stops)


def _include_usage(options: Any, stream: bool) -> bool:
    if options is None:
        return False
    if not isinstance(options, dict):
        raise wrong_type("stream_options", "an object", options)
    if not stream:
        raise ApiError("stream_options is only for stream: true", "stream_options", "invalid_value")
    fields = Fields(options)
    include = fields.boolean("include_usage")
    fields.unsupported("include_obfuscation", False)
    fields.unsupported("continuous_usage_stats", False)
    fields.nothing_left()
    return include


def _is_several(prompt: Any) -> bool:
    """An array of prompts, and not the token ids of one."""
    return isinstance(prompt, list) and bool(prompt) and all(isinstance(item, str | list) for item in prompt)


def _message(value: Any, where: str) -> dict[str, str]:
    if not isinstance(value, dict):
        raise wrong_type(where, "an object", value)
    fields = Fields(value)
    role, content = fields.take("role"), fields.take("content")
    if not isinstance(role, str):
        raise wrong_type(f"{where}.role", "a string", role)
    if content is None and role == "assistant":  # clients send an answer without text back as it came
        content = ""
    if isinstance(content, list):
        content = "".join(_text_part(part, f"{where}.content[{place}]") for place, part in enumerate(content))
    if not isinstance(content, str):
        raise wrong_type(f"{where}.content", "a string or an array of text parts", content)
    for name in ("tool_calls", "annotations"):
        fields.unsupported(name, [])
    fields.take("name")  # no chat template here has a place for it
    fields.nothing_left()
    return {"role": valid_text(role, f"{where}.role"), "content": valid_text(content, f"{where}.content")}


def _text_part(part: Any, where: str) -> str:
    if not isinstance(part, dict) or part.get("type") != "text" or not isinstance(part.get("text"), str):
        raise ApiError(f"{where} must be a part of type text; this model reads nothing else", where, "invalid_value")
    return str(part["text"])


def _refuse_unsupported(fields: Fields, kind: Kind) -> tuple[str, ...]:
    """ApiError for parameters of the API that this server lacks; the names of those that no API knows."""
    for name, inert in (UNSUPPORTED | (UNSUPPORTED_COMPLETION if kind == "completion" else UNSUPPORTED_CHAT)).items():
        fields.unsupported(name, *inert)
    for name in NOTES:
        fields.take(name)
    return fields.left()
