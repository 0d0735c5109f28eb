"""Log-probabilities as OpenAI's API writes them: one form for chat completions, another for completions.

A token's text may be part of a character; then it holds U+FFFD, and chat completions give its bytes beside it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from reference_impl.decoding.logprobs import TokenLogprob

TokenBytes = Callable[[int], bytes]


def for_chat(found: Sequence[TokenLogprob], token_bytes: TokenBytes) -> dict[str, Any]:
    """The `logprobs` of a choice of a chat completion."""

    def entry(token: int, logprob: float) -> dict[str, Any]:
        data = token_bytes(token)
        return {"token": data.decode("utf-8", "replace"), "logprob": logprob, "bytes": list(data)}

    content = [
        entry(one.token, one.logprob) | {"top_logprobs": [entry(token, logprob) for token, logprob in one.top]}
        for one in found
    ]
    return {"content": content, "refusal": None}


def for_completion(found: Sequence[TokenLogprob], token_bytes: TokenBytes, offset: int) -> dict[str, Any]:
    """The `logprobs` of a choice of a completion. `offset`: characters of its tokens before these."""

    def text(token: int) -> str:
        return token_bytes(token).decode("utf-8", "replace")

    offsets = []
    for one in found:
        offsets.append(offset)
        offset += len(text(one.token))
    return {
        "tokens": [text(one.token) for one in found],
        "token_logprobs": [one.logprob for one in found],
        "top_logprobs": [{text(token): logprob for token, logprob in one.top} for one in found],
        "text_offset": offsets,
    }
