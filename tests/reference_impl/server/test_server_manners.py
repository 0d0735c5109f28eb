"""How the server treats clients that are careless, slow or gone, and what it tells the others."""

from __future__ import annotations

import json
import socket
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import httpx
import pytest
from serving_http import HTTP, PATIENCE, SHAPE, alphabet_service, metrics, running, serving, until

from reference_impl.server import app as server_module
from reference_impl.server import slow_clients
from reference_impl.server.app import Service, build_app

GOOD = {"model": "alphabet", "prompt": "a", "max_tokens": 2}


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    with serving(alphabet_service()[0]) as address:
        yield address


def post(url: str, body: dict[str, object], **settings: object) -> httpx.Response:
    return HTTP.post(f"{url}/v1/completions", json=body, **settings)  # type: ignore[arg-type]


def test_unknown_parameters_are_ignored_and_named_in_the_header(url: str) -> None:
    reply = post(url, GOOD | {"tempreature": 0.5, "none": None, "line\nbreak": 1})
    assert (reply.status_code, reply.headers["x-ignored-parameters"]) == (200, "tempreature, line?break")
    assert "x-ignored-parameters" not in post(url, GOOD).headers


def test_a_strict_server_refuses_unknown_parameters() -> None:
    service, _ = alphabet_service()
    strict = Service(service.engine, service.reader.tokenizer, "alphabet", 4, strict=True)  # type: ignore[arg-type]
    with serving(strict) as url:
        reply = post(url, GOOD | {"tempreature": 0.5})
    assert (reply.status_code, reply.json()["error"]["code"]) == (400, "unknown_parameter")
    assert reply.json()["error"]["param"] == "tempreature"


def test_every_answer_has_its_id_in_the_header(url: str) -> None:
    reply = post(url, GOOD)
    assert reply.headers["x-request-id"] == reply.json()["id"]
    stream = post(url, GOOD | {"stream": True})
    assert stream.headers["x-request-id"] == json.loads(stream.text.split("\n")[0].removeprefix("data: "))["id"]


@pytest.mark.parametrize(
    ("kind", "status"),
    [
        ("text/plain", 415),
        ("application/x-www-form-urlencoded", 415),
        ("application/json; charset=utf-8", 200),
        ("application/problem+json", 200),
        (None, 200),
    ],
)
def test_a_body_of_another_kind_than_json_is_refused(url: str, kind: str | None, status: int) -> None:
    request = httpx.Request("POST", f"{url}/v1/completions", content=json.dumps(GOOD).encode())
    if kind is not None:
        request.headers["content-type"] = kind
    reply = HTTP.send(request)
    assert reply.status_code == status
    if status == 415:
        assert "must be JSON" in reply.json()["error"]["message"]


def test_an_assistants_message_may_lack_content(url: str) -> None:
    messages = [{"role": "user", "content": "a"}, {"role": "assistant"}, {"role": "user", "content": "b"}]
    body = {"model": "alphabet", "messages": messages, "max_tokens": 2}
    assert HTTP.post(f"{url}/v1/chat/completions", json=body).status_code == 200


@pytest.mark.parametrize("endpoint", ["completions", "chat/completions"])
def test_text_that_no_context_can_hold_is_refused_before_it_is_tokenized(
    url: str, endpoint: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The tokenizer's tokens are a byte each, so a context of 600 tokens holds 600 bytes."""

    def never(*arguments: object) -> list[int]:
        raise AssertionError("it was tokenized")

    monkeypatch.setattr("serving_http.ByteTokenizer.encode", never)
    text = "é" * (SHAPE.max_context // 2 + 1)
    asked = {"prompt": text} if endpoint == "completions" else {"messages": [{"role": "user", "content": text}]}
    reply = HTTP.post(f"{url}/v1/{endpoint}", json={"model": "alphabet"} | asked)
    assert (reply.status_code, reply.json()["error"]["code"]) == (400, "context_length_exceeded")
    assert "has 602 bytes of text" in reply.json()["error"]["message"]


def test_pages_of_another_origin_may_call_it_only_where_it_says_so() -> None:
    origin = {"Origin": "https://notes.example"}
    service, _ = alphabet_service()
    with running(build_app(service, ["https://notes.example"])) as (url, _):
        assert post(url, GOOD, headers=origin).headers["access-control-allow-origin"] == "https://notes.example"
    service, _ = alphabet_service()
    with serving(service) as url:
        assert "access-control-allow-origin" not in post(url, GOOD, headers=origin).headers


def connected(url: str) -> socket.socket:
    parts = httpx.URL(url)
    return socket.create_connection((parts.host, parts.port), timeout=PATIENCE)


def test_headers_that_never_end_are_cut_and_others_are_served(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(slow_clients, "HEADER_SECONDS", 0.5)
    service, _ = alphabet_service()
    with running(build_app(service), http=slow_clients.HeaderLimit) as (url, _), connected(url) as slow:
        slow.sendall(b"POST /v1/completions HTTP/1.1\r\nHost: x\r\nX-Slow: ")
        assert post(url, GOOD).status_code == 200
        assert slow.recv(1000) == b""


def test_an_answer_may_take_longer_than_headers_may(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(slow_clients, "HEADER_SECONDS", 0.2)
    service, model = alphabet_service()
    model.hold()
    with running(build_app(service), http=slow_clients.HeaderLimit) as (url, _), ThreadPoolExecutor(1) as pool:
        call = pool.submit(post, url, GOOD)
        threading.Event().wait(0.6)
        model.free()
        assert call.result(PATIENCE).status_code == 200


def test_a_body_that_never_ends_is_cut(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server_module, "BODY_SECONDS", 0.3)
    with connected(url) as slow:
        slow.sendall(b"POST /v1/completions HTTP/1.1\r\nHost: x\r\nContent-Length: 100\r\n\r\n{")
        assert slow.recv(1000).startswith(b"HTTP/1.1 408 ")


@pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")  # the death is meant
def test_an_open_stream_gets_an_error_event_when_the_engines_thread_dies() -> None:
    service, model = alphabet_service()
    with serving(service) as url:
        model.hold()
        model.let(2)
        with HTTP.stream("POST", f"{url}/v1/completions", json=GOOD | {"stream": True, "max_tokens": 400}) as stream:
            lines = stream.iter_lines()
            assert next(lines).startswith("data: ")

            def dies(outputs: object) -> None:
                raise SystemExit("the thread is killed")

            service.dispatcher.serving._publish = dies  # type: ignore[method-assign]
            model.free()
            rest = "\n".join(lines)
    assert '"code":"engine_error"' in rest
    assert "the engine stopped: SystemExit: the thread is killed" in rest
    assert "[DONE]" not in rest


def test_a_stream_that_outlives_the_grace_period_ends_with_an_error_event() -> None:
    service, model = alphabet_service()
    model.hold()
    model.let(2)
    with (
        running(build_app(service), grace=1) as (url, server),
        HTTP.stream("POST", f"{url}/v1/completions", json=GOOD | {"stream": True, "max_tokens": 400}) as stream,
    ):
        lines = stream.iter_lines()
        assert next(lines).startswith("data: ")
        until(lambda: metrics(url)["llm_requests_running"] == 1)
        server.should_exit = True
        rest = "\n".join(lines)
        model.free()
    assert '"code":"shutting_down"' in rest
