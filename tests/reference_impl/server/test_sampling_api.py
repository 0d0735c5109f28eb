"""Penalties, log-probabilities and keys over HTTP, as OpenAI's own client sees them."""

from __future__ import annotations

import json
import math
import socket
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import httpx
import pytest
from openai import OpenAI
from serving_http import HTTP, PATIENCE, alphabet_service, metrics, running, serving, until

from reference_impl.__main__ import main
from reference_impl.loadtest.idle import leftovers
from reference_impl.server import slow_clients
from reference_impl.server.app import build_app
from reference_impl.server.slow_clients import HeaderLimit


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    with serving(alphabet_service()[0]) as address:
        yield address


@pytest.fixture(scope="module")
def client(url: str) -> Iterator[OpenAI]:
    with OpenAI(base_url=f"{url}/v1", api_key="none", max_retries=0, timeout=PATIENCE) as made:
        yield made


DIGIT = math.log(0.1)  # after a digit comes any digit, all equally likely


def test_a_completion_tells_tokens_their_log_probabilities_and_where_they_begin(client: OpenAI) -> None:
    answer = client.completions.create(model="alphabet", prompt="x1", max_tokens=3, logprobs=5, temperature=0)
    told = answer.choices[0].logprobs
    assert told is not None
    assert told.tokens == list(answer.choices[0].text) == ["0", "0", "0"]
    assert told.token_logprobs == pytest.approx([DIGIT] * 3)
    assert told.text_offset == [0, 1, 2]
    assert told.top_logprobs is not None
    assert [len(top) for top in told.top_logprobs] == [5] * 3


def test_a_chat_tells_bytes_and_the_likeliest_tokens_whole_or_streamed(client: OpenAI) -> None:
    """The answer goes from B on: after a letter comes the next one, nearly for sure."""
    settings = {"model": "alphabet", "messages": [{"role": "user", "content": "hi"}], "max_tokens": 2}
    settings |= {"logprobs": True, "top_logprobs": 2, "temperature": 0}
    whole = client.chat.completions.create(**settings).choices[0].logprobs
    assert whole is not None
    assert whole.content is not None
    assert [(one.token, one.bytes) for one in whole.content] == [("B", [66]), ("C", [67])]
    assert [one.logprob for one in whole.content] == pytest.approx([0.0, 0.0], abs=1e-9)
    assert whole.content[1].top_logprobs[0].token == "C"
    stream = client.chat.completions.create(stream=True, **settings)
    told = [piece.choices[0].logprobs for piece in stream]
    assert [one for each in told if each is not None for one in each.content or []] == whole.content


def test_no_log_probabilities_come_unasked_and_none_of_a_stop_token(client: OpenAI) -> None:
    settings = {"model": "alphabet", "prompt": "y", "max_tokens": 5}
    assert client.completions.create(**settings).choices[0].logprobs is None
    told = client.completions.create(logprobs=0, **settings).choices[0].logprobs
    assert told is not None
    assert told.tokens == ["z"]  # the end of the alphabet ends the answer


def test_penalties_and_biases_arrive(client: OpenAI) -> None:
    settings = {"model": "alphabet", "prompt": "x1", "max_tokens": 10, "temperature": 0}
    once = client.completions.create(presence_penalty=2, **settings).choices[0].text
    assert sorted(once) == list("0123456789")
    sevens = client.completions.create(logit_bias={"55": 100}, **settings).choices[0].text
    assert sevens == "7" * 10
    rarely = client.completions.create(extra_body={"repetition_penalty": 1.5}, **settings).choices[0].text
    assert rarely == "0" * 10  # the logits of all digits are 0, which no factor changes


def test_only_callers_with_the_key_are_served() -> None:
    service, _ = alphabet_service()
    body = {"model": "alphabet", "prompt": "a", "max_tokens": 1}
    with running(build_app(service, api_key="a secret")) as (url, _):
        for header in (None, "Bearer another", "a secret", "Basic a secret"):
            headers = {} if header is None else {"Authorization": header}
            reply = HTTP.post(f"{url}/v1/completions", json=body, headers=headers)
            assert (reply.status_code, reply.json()["error"]["code"]) == (401, "invalid_api_key")
        right = {"Authorization": "Bearer a secret"}
        assert HTTP.post(f"{url}/v1/completions", json=body, headers=right).status_code == 200
        assert HTTP.get(f"{url}/v1/models").status_code == 401
        assert HTTP.get(f"{url}/health").status_code == 200


def test_a_server_does_not_start_without_the_key_that_it_should_have(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["serve", "--port", "0", "--api-key-env", "NO_SUCH_VARIABLE"]) == 2
    assert capsys.readouterr().err == "serve: --api-key-env NO_SUCH_VARIABLE: the environment has no such variable\n"


# --- Half-closed connections ----------------------------------------------------------------------------------------


def sent_and_half_closed(url: str, body: dict[str, object]) -> socket.socket:
    parts = httpx.URL(url)
    data = json.dumps({"model": "alphabet"} | body).encode()
    made = socket.create_connection((parts.host, parts.port), timeout=PATIENCE)
    made.sendall(b"POST /v1/completions HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n" % len(data) + data)
    made.shutdown(socket.SHUT_WR)
    return made


def everything(connection: socket.socket) -> bytes:
    return b"".join(iter(lambda: connection.recv(65536), b""))


@pytest.mark.parametrize("stream", [False, True])
def test_a_client_that_has_closed_its_half_of_the_connection_is_answered(stream: bool) -> None:
    service, model = alphabet_service()
    model.hold()
    body = {"prompt": "a", "max_tokens": 3, "stream": stream}
    with running(build_app(service), http=HeaderLimit) as (url, _), sent_and_half_closed(url, body) as connection:
        until(lambda: metrics(url)["llm_requests_waiting"] == 1)
        model.free()
        reply = everything(connection)
    interim, _, final = reply.rpartition(b"HTTP/1.1 200 OK\r\n")
    assert interim.replace(b"HTTP/1.1 102 \r\n\r\n", b"") == b""
    assert (b"[DONE]" if stream else b'"text":"bcd"') in final


def test_a_client_that_has_gone_away_is_not_computed_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(slow_clients, "PROBE_SECONDS", 0.05)
    service, model = alphabet_service()
    model.hold()
    with running(build_app(service), http=HeaderLimit) as (url, _):
        sent_and_half_closed(url, {"prompt": "a", "max_tokens": 400}).close()
        until(lambda: metrics(url)["llm_requests_waiting"] == 1)
        until(lambda: model.let(1) or leftovers(metrics(url)) == [])
        assert metrics(url)["llm_generated_tokens_total"] < 400


# --- A huge prompt --------------------------------------------------------------------------------------------------


def test_health_is_answered_while_a_huge_prompt_is_tokenized(monkeypatch: pytest.MonkeyPatch) -> None:
    """The tokenizer does not return before /health has answered, so this never ends if the one waits for the other."""
    begun, healthy = threading.Event(), threading.Event()

    def slowly(self: object, text: str) -> list[int]:
        begun.set()
        assert healthy.wait(PATIENCE)
        return list(text.encode())

    monkeypatch.setattr("serving_http.ByteTokenizer.encode", slowly)
    service, _ = alphabet_service()
    with serving(service) as url, ThreadPoolExecutor(1) as pool:
        body = {"model": "alphabet", "prompt": "a", "max_tokens": 1}
        call = pool.submit(HTTP.post, f"{url}/v1/completions", json=body)
        assert begun.wait(PATIENCE)
        assert HTTP.get(f"{url}/health").status_code == 200
        healthy.set()
        assert call.result(PATIENCE).status_code == 200
