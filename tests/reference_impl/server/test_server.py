"""The HTTP server, over real loopback connections: what OpenAI's own client sees, and what is left afterwards."""

from __future__ import annotations

import json
import socket
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import httpx
import openai
import pytest
from openai import OpenAI
from prometheus_client.parser import text_string_to_metric_families
from serving_http import CAPACITY, HTTP, PATIENCE, Alphabet, alphabet_service, metrics, running, serving, until

from reference_impl.__main__ import main
from reference_impl.loadtest.idle import leftovers
from reference_impl.server import app as server_module
from reference_impl.server.app import Service, build_app


@pytest.fixture(scope="module")
def shared() -> Iterator[tuple[Service, Alphabet, str]]:
    service, model = alphabet_service()
    with serving(service) as url:
        yield service, model, url
        model.free()


@pytest.fixture
def model(shared: tuple[Service, Alphabet, str]) -> Iterator[Alphabet]:
    yield shared[1]
    shared[1].free()


@pytest.fixture
def url(shared: tuple[Service, Alphabet, str]) -> Iterator[str]:
    """The address of the server; after the test it must hold nothing."""
    yield shared[2]
    shared[1].free()
    until(lambda: leftovers(metrics(shared[2])) == [])


@pytest.fixture(scope="module")
def openai_client(shared: tuple[Service, Alphabet, str]) -> Iterator[OpenAI]:
    with OpenAI(base_url=f"{shared[2]}/v1", api_key="none", max_retries=0, timeout=PATIENCE) as client:
        yield client


@pytest.fixture
def client(openai_client: OpenAI, url: str) -> OpenAI:
    return openai_client


def post(url: str, body: dict[str, Any], endpoint: str = "completions", **options: Any) -> httpx.Response:
    data = json.dumps({"model": "alphabet"} | body)
    return HTTP.post(f"{url}/v1/{endpoint}", content=data, **options)


# --- what the official client gets


def test_the_client_finds_the_model(client: OpenAI) -> None:
    assert [model.id for model in client.models.list()] == ["alphabet"]
    assert client.models.retrieve("alphabet").created == 1_000_000
    with pytest.raises(openai.NotFoundError, match="the model 'beta' does not exist; this server has 'alphabet'"):
        client.models.retrieve("beta")


def test_a_completion_has_text_usage_and_the_reason_of_its_end(client: OpenAI) -> None:
    cut = client.completions.create(model="alphabet", prompt="abc", max_tokens=4)
    assert (cut.choices[0].text, cut.choices[0].finish_reason) == ("defg", "length")
    assert cut.usage is not None
    assert (cut.usage.prompt_tokens, cut.usage.completion_tokens, cut.usage.total_tokens) == (3, 4, 7)
    ended = client.completions.create(model="alphabet", prompt="w")
    assert (ended.choices[0].text, ended.choices[0].finish_reason) == ("xyz", "stop")
    assert ended.object == "text_completion"
    assert ended.created == 1_000_000


def test_sixteen_tokens_are_the_default_of_a_completion_and_the_context_that_of_a_chat(client: OpenAI) -> None:
    assert client.completions.create(model="alphabet", prompt="a").choices[0].text == "bcdefghijklmnopq"
    chat = client.chat.completions.create(model="alphabet", messages=[{"role": "user", "content": "hi"}])
    assert chat.choices[0].message.content == "".join(map(chr, range(ord("B"), ord("z") + 1)))
    assert chat.choices[0].finish_reason == "stop"


def test_a_chat_is_read_through_the_template(client: OpenAI) -> None:
    chat = client.chat.completions.create(
        model="alphabet",
        messages=[
            {"role": "system", "content": "be brief"},
            {"role": "user", "content": [{"type": "text", "text": "h"}, {"type": "text", "text": "i"}]},
        ],
        max_completion_tokens=3,
    )
    assert (chat.choices[0].message.role, chat.choices[0].message.content) == ("assistant", "BCD")
    assert chat.usage is not None
    assert chat.usage.prompt_tokens == len("system=be brief;user=hi;A")


@pytest.mark.parametrize("include_usage", [False, True])
def test_a_streamed_completion_is_the_whole_one_in_pieces(client: OpenAI, include_usage: bool) -> None:
    chunks = list(
        client.completions.create(
            model="alphabet", prompt="abc", max_tokens=4, stream=True, stream_options={"include_usage": include_usage}
        )
    )
    answers = [chunk.choices[0] for chunk in chunks if chunk.choices]
    assert [answer.text for answer in answers if answer.text] == ["d", "e", "f", "g"]
    assert [answer.finish_reason for answer in answers if answer.finish_reason] == ["length"]
    usage = [chunk.usage.completion_tokens for chunk in chunks if chunk.usage is not None]
    assert usage == ([4] if include_usage else [])


def test_a_streamed_chat_names_the_role_first_and_ends_with_usage(client: OpenAI) -> None:
    chunks = list(
        client.chat.completions.create(
            model="alphabet",
            messages=[{"role": "user", "content": "hi"}],
            max_tokens=2,
            stream=True,
            stream_options={"include_usage": True},
        )
    )
    deltas = [(chunk.choices[0].delta.role, chunk.choices[0].delta.content) for chunk in chunks[:-1]]
    assert deltas == [("assistant", ""), (None, "B"), (None, "C"), (None, None)]
    assert chunks[-2].choices[0].finish_reason == "length"
    assert chunks[-1].choices == []
    assert chunks[-1].usage is not None
    assert chunks[-1].usage.total_tokens == len("user=hi;A") + 2


def test_the_stream_on_the_wire_is_server_sent_events_ended_by_done(url: str) -> None:
    reply = post(url, {"prompt": "a", "max_tokens": 2, "stream": True})
    assert reply.headers["content-type"].startswith("text/event-stream")
    *events, done, end = reply.text.split("\n\n")
    assert (done, end) == ("data: [DONE]", "")
    assert all(json.loads(event.removeprefix("data: "))["object"] == "text_completion" for event in events)


def test_a_streamed_character_is_never_cut_in_two(client: OpenAI) -> None:
    chunks = client.completions.create(model="alphabet", prompt="#", max_tokens=3, stream=True)
    assert [chunk.choices[0].text for chunk in chunks if chunk.choices[0].text] == ["é", "x"]


@pytest.mark.parametrize("stream", [False, True])
def test_nothing_of_a_stop_string_is_shown(client: OpenAI, stream: bool) -> None:
    reply = client.completions.create(model="alphabet", prompt="abc", stop=["nothing", "hi"], stream=stream)
    choices = [chunk.choices[0] for chunk in reply] if stream else reply.choices
    assert "".join(choice.text for choice in choices) == "defg"
    assert choices[-1].finish_reason == "stop"


def test_every_prompt_of_a_list_has_n_choices_in_order(client: OpenAI) -> None:
    reply = client.completions.create(model="alphabet", prompt=["a", "p"], n=2, max_tokens=1)
    assert [(choice.index, choice.text) for choice in reply.choices] == [(0, "b"), (1, "b"), (2, "q"), (3, "q")]
    assert reply.usage is not None
    assert (reply.usage.prompt_tokens, reply.usage.completion_tokens) == (2, 4)


def test_streamed_choices_say_which_they_are(client: OpenAI) -> None:
    texts = {0: "", 1: ""}
    for chunk in client.completions.create(model="alphabet", prompt=["a", "p"], max_tokens=3, stream=True):
        texts[chunk.choices[0].index] += chunk.choices[0].text
    assert texts == {0: "bcd", 1: "qrs"}


@pytest.mark.parametrize("prompt", [[97, 98], [[97, 98]]])
def test_prompts_may_be_token_ids(client: OpenAI, prompt: Any) -> None:
    assert client.completions.create(model="alphabet", prompt=prompt, max_tokens=2).choices[0].text == "cd"


def test_a_seed_repeats_an_answer_and_choices_differ_from_each_other(client: OpenAI) -> None:
    def digits(seed: int) -> list[str]:
        reply = client.completions.create(model="alphabet", prompt="0", n=3, seed=seed, max_tokens=12)
        return [choice.text for choice in reply.choices]

    first = digits(7)
    assert digits(7) == first
    assert len({*first, *digits(8)}) == 6
    greedy = client.completions.create(model="alphabet", prompt="0", n=3, seed=7, temperature=0, max_tokens=4)
    assert [choice.text for choice in greedy.choices] == ["0000"] * 3


def test_ignore_eos_goes_on_to_the_last_token(client: OpenAI) -> None:
    reply = client.completions.create(model="alphabet", prompt="y", max_tokens=4, extra_body={"ignore_eos": True})
    assert reply.choices[0].finish_reason == "length"
    assert reply.usage is not None
    assert reply.usage.completion_tokens == 4


# --- what is refused

HI = [{"role": "user", "content": "hi"}]
BAD_COMPLETIONS: list[tuple[dict[str, Any], int, str, str]] = [
    ({"model": "beta"}, 404, "model", "model_not_found"),
    ({"model": None}, 400, "model", "missing_required_parameter"),
    ({"model": 3}, 400, "model", "invalid_type"),
    ({"prompt": None}, 400, "prompt", "missing_required_parameter"),
    ({"prompt": ""}, 400, "prompt", "invalid_value"),
    ({"prompt": []}, 400, "prompt", "invalid_value"),
    ({"prompt": ["a", ""]}, 400, "prompt", "invalid_value"),
    ({"prompt": {"text": "a"}}, 400, "prompt", "invalid_type"),
    ({"prompt": ["a", 3]}, 400, "prompt", "invalid_type"),
    ({"prompt": [97, True]}, 400, "prompt", "invalid_type"),
    ({"prompt": [97, 256]}, 400, "prompt", "invalid_value"),
    ({"prompt": "a\ud800"}, 400, "prompt", "invalid_value"),
    ({"prompt": "a" * 600}, 400, "prompt", "context_length_exceeded"),
    ({"max_tokens": 600}, 400, "prompt", "context_length_exceeded"),
    ({"prompt": "a" * CAPACITY, "max_tokens": 2}, 400, "prompt", "invalid_value"),
    ({"max_tokens": 0}, 400, "max_tokens", "invalid_value"),
    ({"max_tokens": "4"}, 400, "max_tokens", "invalid_type"),
    ({"max_tokens": 4.5}, 400, "max_tokens", "invalid_type"),
    ({"temperature": -0.1}, 400, "temperature", "invalid_value"),
    ({"temperature": "hot"}, 400, "temperature", "invalid_type"),
    ({"top_p": 1.5}, 400, "top_p", "invalid_value"),
    ({"n": 0}, 400, "n", "invalid_value"),
    ({"prompt": ["a"] * 500_000}, 400, "prompt", "invalid_value"),  # refused before any becomes tokens
    ({"n": 9}, 400, "n", "invalid_value"),  # more than run and wait together
    ({"seed": 0.5}, 400, "seed", "invalid_type"),
    ({"stop": [""]}, 400, "stop", "invalid_value"),
    ({"stop": 3}, 400, "stop", "invalid_type"),
    ({"stop": ["x"] * 17}, 400, "stop", "invalid_value"),
    ({"stream": "yes"}, 400, "stream", "invalid_type"),
    ({"stream_options": {"include_usage": True}}, 400, "stream_options", "invalid_value"),
    ({"stream": True, "stream_options": 1}, 400, "stream_options", "invalid_type"),
    ({"logprobs": 21}, 400, "logprobs", "invalid_value"),
    ({"logprobs": True}, 400, "logprobs", "invalid_type"),
    ({"echo": True}, 400, "echo", "unsupported_parameter"),
    ({"frequency_penalty": 2.5}, 400, "frequency_penalty", "invalid_value"),
    ({"presence_penalty": "1"}, 400, "presence_penalty", "invalid_type"),
    ({"repetition_penalty": 0}, 400, "repetition_penalty", "invalid_value"),
    ({"min_p": 2}, 400, "min_p", "invalid_value"),
    ({"logit_bias": [1]}, 400, "logit_bias", "invalid_type"),
    ({"logit_bias": {"a": 1}}, 400, "logit_bias", "invalid_value"),
    ({"logit_bias": {"97": 101}}, 400, "logit_bias.97", "invalid_value"),
    ({"logit_bias": {"97": "1"}}, 400, "logit_bias.97", "invalid_type"),
    ({"logit_bias": {"256": 1}}, 400, "prompt", "invalid_value"),
]
BAD_CHATS: list[tuple[dict[str, Any], int, str, str]] = [
    ({"messages": None}, 400, "messages", "invalid_type"),
    ({"messages": []}, 400, "messages", "invalid_type"),
    ({"messages": ["hi"]}, 400, "messages[0]", "invalid_type"),
    ({"messages": [*HI, {"role": "user"}]}, 400, "messages[1].content", "invalid_type"),
    ({"messages": [{"role": 1, "content": "a"}]}, 400, "messages[0].role", "invalid_type"),
    ({"messages": [{"role": "poet", "content": "a"}]}, 400, "messages", "invalid_value"),
    (
        {"messages": [{"role": "user", "content": [{"type": "image_url"}]}]},
        400,
        "messages[0].content[0]",
        "invalid_value",
    ),
    ({"max_tokens": 3, "max_completion_tokens": 4}, 400, "max_tokens", "invalid_value"),
    ({"tools": [{"type": "function"}]}, 400, "tools", "unsupported_parameter"),
    ({"logprobs": 1}, 400, "logprobs", "invalid_type"),
    ({"logprobs": True, "top_logprobs": 21}, 400, "top_logprobs", "invalid_value"),
    ({"top_logprobs": 2}, 400, "top_logprobs", "invalid_value"),
]


@pytest.mark.parametrize(
    ("endpoint", "body", "status", "param", "code"),
    [("completions", *case) for case in BAD_COMPLETIONS] + [("chat/completions", *case) for case in BAD_CHATS],
)
def test_a_bad_call_is_refused_and_the_parameter_named(
    url: str, endpoint: str, body: dict[str, Any], status: int, param: str, code: str
) -> None:
    good = {"prompt": "a"} if endpoint == "completions" else {"messages": HI}
    reply = post(url, good | body, endpoint)
    error = reply.json()["error"]
    assert (reply.status_code, error["param"], error["code"]) == (status, param, code)
    assert error["type"] == "invalid_request_error"
    assert param.split("[")[0].split("_")[0] in error["message"] or code in ("context_length_exceeded", "invalid_value")


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b'{"model": "alphabet"', "the body is not JSON: Expecting ',' delimiter"),
        (b"", "the body is not JSON"),
        (b"\xff\xfe\x00", "the body is not JSON"),
        (b"[1]", "expected a JSON object, got an array"),
        (b'{"model": "alphabet", "prompt": "a", "temperature": NaN}', "temperature must be from 0 to 2, got nan"),
        (b'{"a":' + b"[" * 100_000, "the body is"),
    ],
)
def test_a_body_that_is_no_call_is_refused_with_the_reason(url: str, data: bytes, message: str) -> None:
    reply = HTTP.post(f"{url}/v1/completions", content=data)
    assert reply.status_code == 400
    assert reply.json()["error"]["message"].startswith(message)


def test_values_that_ask_for_nothing_are_accepted(url: str) -> None:
    nothing = {
        "echo": False, "best_of": 1, "suffix": None, "logprobs": None, "logit_bias": {}, "presence_penalty": 0,
        "frequency_penalty": 0.0, "user": "me", "stream_options": None, "stop": None, "seed": None, "top_k": -1,
    }  # fmt: skip
    assert post(url, {"prompt": "a", "max_tokens": 1} | nothing).json()["choices"][0]["text"] == "b"


def test_an_oversized_body_is_refused(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server_module, "MOST_BYTES", 1000)
    reply = post(url, {"prompt": "a" * 1000})
    assert (reply.status_code, reply.json()["error"]["code"]) == (413, "body_too_large")


def test_unknown_addresses_and_methods_have_the_shape_of_an_error_too(url: str) -> None:
    missing = HTTP.get(f"{url}/v1/embeddings")
    assert (missing.status_code, missing.json()["error"]["message"]) == (404, "GET /v1/embeddings: Not Found")
    wrong = HTTP.get(f"{url}/v1/completions")
    assert (wrong.status_code, wrong.headers["allow"]) == (405, "POST")
    assert wrong.json()["error"]["type"] == "invalid_request_error"


# --- overload, clients that leave, failures


def test_overload_is_refused_with_a_time_to_come_again_and_nobody_else_suffers(
    url: str, model: Alphabet, client: OpenAI
) -> None:
    model.hold()
    before = metrics(url)
    with ThreadPoolExecutor(8) as pool:  # 4 run and 4 wait
        calls = [pool.submit(post, url, {"prompt": "a", "max_tokens": 2}) for _ in range(8)]
        try:
            until(lambda: grown(url, before, "llm_requests_accepted_total") == 8)
            until(lambda: metrics(url)["llm_requests_waiting"] + metrics(url)["llm_requests_running"] == 8)
            with pytest.raises(openai.RateLimitError) as refused:
                client.completions.create(model="alphabet", prompt="a")
        finally:
            model.free()
        assert 1 <= int(refused.value.response.headers["retry-after"]) <= 60
        assert refused.value.code == "overloaded"
        assert [call.result().json()["choices"][0]["text"] for call in calls] == ["bc"] * 8
    assert grown(url, before, 'llm_requests_refused_total{reason="overload"}') == 1
    assert client.completions.create(model="alphabet", prompt="a", max_tokens=1).choices[0].text == "b"


def grown(url: str, before: dict[str, float], name: str) -> float:
    return metrics(url)[name] - before[name]


CANCELLED = 'llm_requests_ended_total{finish="cancelled"}'


def test_a_client_that_leaves_in_the_middle_of_a_stream_frees_its_blocks(url: str, model: Alphabet) -> None:
    before = metrics(url)
    model.hold()
    model.let(3)
    body = {"model": "alphabet", "prompt": "a", "max_tokens": 500, "stream": True, "ignore_eos": True}
    with HTTP.stream("POST", f"{url}/v1/completions", json=body) as reply:
        lines = (line for line in reply.iter_lines() if line)
        assert [json.loads(next(lines)[6:])["choices"][0]["text"] for _ in range(3)] == ["b", "c", "d"]
        assert metrics(url)['llm_kv_blocks{state="used"}'] == 1

    def gone() -> bool:
        model.let(1)  # a cancel takes effect between two passes
        return grown(url, before, CANCELLED) == 1

    until(gone)
    assert metrics(url)['llm_kv_blocks{state="used"}'] == 0
    assert metrics(url)["llm_requests_running"] == 0


def test_clients_that_leave_before_an_answer_free_running_and_waiting_requests(url: str, model: Alphabet) -> None:
    before = metrics(url)
    model.hold()
    bodies = [{"prompt": "a", "max_tokens": 500, "ignore_eos": True, "stream": i % 2 == 0} for i in range(6)]
    with ThreadPoolExecutor(6) as pool:  # 4 of them run
        calls = [pool.submit(post, url, body, timeout=1.0) for body in bodies]
        assert all(isinstance(call.exception(), httpx.TimeoutException) for call in calls)
    model.let(1)
    n_accepted = grown(url, before, "llm_requests_accepted_total")

    def gone() -> bool:
        model.let(1)
        return grown(url, before, CANCELLED) == n_accepted

    until(gone)
    assert n_accepted == 6


def test_a_failed_pass_is_a_500_for_its_requests_and_the_server_lives_on(client: OpenAI) -> None:
    with pytest.raises(openai.InternalServerError, match=r"the engine failed: .*a kernel failed") as failed:
        client.completions.create(model="alphabet", prompt="!")
    assert failed.value.code == "engine_error"
    with pytest.raises(openai.InternalServerError):  # before its first token a stream can still say so by its status
        client.completions.create(model="alphabet", prompt="!", stream=True)
    assert client.completions.create(model="alphabet", prompt="a", max_tokens=1).choices[0].text == "b"


def test_a_request_with_broken_logits_fails_alone_in_its_batch(url: str, model: Alphabet) -> None:
    before = metrics(url)
    model.hold()
    with ThreadPoolExecutor(3) as pool:
        calls = [pool.submit(post, url, {"prompt": prompt, "max_tokens": 2}) for prompt in ("a", "ab?", "p")]
        until(lambda: grown(url, before, "llm_requests_accepted_total") == 3)
        model.free()
        good, bad, other = (call.result() for call in calls)
    assert (bad.status_code, bad.json()["error"]["type"]) == (500, "server_error")
    assert "not finite" in bad.json()["error"]["message"]
    assert [reply.json()["choices"][0]["text"] for reply in (good, other)] == ["bc", "qr"]


def test_a_failure_after_the_first_token_is_an_event_and_no_done_follows(url: str, client: OpenAI) -> None:
    reply = post(url, {"prompt": " ", "stream": True})  # the answer "!" breaks the next pass
    first, second, end = reply.text.split("\n\n")
    assert json.loads(first[6:])["choices"][0]["text"] == "!"
    assert json.loads(second[6:])["error"]["code"] == "engine_error"
    assert end == ""
    with pytest.raises(openai.APIError, match="a kernel failed"):
        list(client.completions.create(model="alphabet", prompt=" ", stream=True))


def test_one_failed_choice_fails_the_call_and_frees_the_others(client: OpenAI, url: str) -> None:
    before = metrics(url)
    with pytest.raises(openai.InternalServerError):
        client.completions.create(model="alphabet", prompt=["a", "?"], max_tokens=500, extra_body={"ignore_eos": True})
    until(lambda: leftovers(metrics(url)) == [])
    assert grown(url, before, 'llm_requests_ended_total{finish="error"}') == 1


def test_a_failure_of_the_scheduler_gives_up_on_what_is_open_and_no_more(
    shared: tuple[Service, Alphabet, str], client: OpenAI, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail() -> None:
        monkeypatch.undo()
        raise RuntimeError("no plan")

    monkeypatch.setattr(shared[0].engine.scheduler, "schedule", fail)
    with pytest.raises(openai.InternalServerError, match="RuntimeError: no plan"):
        client.completions.create(model="alphabet", prompt="a")
    assert client.completions.create(model="alphabet", prompt="a", max_tokens=1).choices[0].text == "b"


# --- metrics, health, shutdown


def test_metrics_are_valid_and_count_requests_tokens_and_latencies() -> None:
    service, _ = alphabet_service()
    with serving(service) as url:
        assert HTTP.get(f"{url}/health").json() == {"status": "ok"}
        for _ in range(2):
            assert post(url, {"prompt": "a" * 40, "max_tokens": 3}).status_code == 200
        post(url, {"prompt": "a", "max_tokens": 1})
        post(url, {"prompt": ""})
        text = HTTP.get(f"{url}/metrics").text
    samples = {
        (sample.name, *sample.labels.values()): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    }
    expected = {
        ("llm_requests_accepted_total",): 3,
        ("llm_requests_ended_total", "length"): 3,
        ("llm_requests_ended_total", "cancelled"): 0,
        ("llm_requests_refused_total", "invalid"): 1,
        ("llm_prompt_tokens_total",): 81,
        ("llm_generated_tokens_total",): 7,
        ("llm_prefix_shared_tokens_total",): 32,  # two full blocks of the second prompt
        ("llm_computed_tokens_total", "prefill"): 40 + 8 + 1,
        ("llm_computed_tokens_total", "decode"): 4,
        ("llm_steps_total",): 7,
        ("llm_preemptions_total",): 0,
        ("llm_drafted_tokens_total",): 0,
        ("llm_accepted_draft_tokens_total",): 0,
        ("llm_requests_running",): 0,
        ("llm_requests_waiting",): 0,
        ("llm_kv_blocks", "used"): 0,
        ("llm_kv_blocks", "evictable"): 2,
        ("llm_kv_blocks", "free"): 30,
        ("llm_kv_usage_ratio",): 0,
        ("llm_time_to_first_token_seconds_count",): 3,
        ("llm_time_to_first_token_seconds_bucket", "+Inf"): 3,
        ("llm_time_per_output_token_seconds_count",): 2,  # a single token has no pause
    }
    assert {name: samples[name] for name in expected} == expected


def test_shutdown_lets_open_answers_finish_and_takes_no_new_ones() -> None:
    service, model = alphabet_service()
    model.hold()
    with running(build_app(service)) as (url, server), ThreadPoolExecutor(1) as pool:
        call = pool.submit(post, url, {"prompt": "a", "max_tokens": 2, "stream": True})
        until(lambda: metrics(url)["llm_requests_accepted_total"] == 1)
        server.should_exit = True

        def refused() -> bool:
            try:
                post(url, {"prompt": "a"}, timeout=1.0)
            except httpx.ConnectError:
                return True
            except httpx.TransportError:
                return False
            return False

        until(refused)
        model.free()
        assert call.result().text.endswith("data: [DONE]\n\n")
    assert not service.dispatcher.serving.alive


def test_shutdown_cancels_what_is_open_after_the_grace_period() -> None:
    service, model = alphabet_service()
    model.hold()
    with running(build_app(service), grace=1) as (url, server), ThreadPoolExecutor(1) as pool:
        call = pool.submit(post, url, {"prompt": "a", "max_tokens": 500, "ignore_eos": True})
        until(lambda: metrics(url)["llm_requests_accepted_total"] == 1)
        server.should_exit = True
        assert isinstance(call.exception(PATIENCE), httpx.TransportError) or call.result().status_code >= 500
        model.free()
    assert not service.dispatcher.serving.alive
    assert service.engine.idle
    assert service.dispatcher.serving.snapshot.blocks_used == 0


def test_a_server_whose_engine_is_gone_says_so() -> None:
    service, _ = alphabet_service()
    with serving(service) as url:
        service.dispatcher.serving.stop()
        assert HTTP.get(f"{url}/health").status_code == 503
        reply = post(url, {"prompt": "a"})
        assert (reply.status_code, reply.json()["error"]["code"]) == (503, "engine_stopped")


# --- the command


def run(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str, str]:
    status = main(["serve", *arguments])
    out, err = capsys.readouterr()
    return status, out, err


def test_a_port_in_use_is_one_line_and_status_2(capsys: pytest.CaptureFixture[str]) -> None:
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = other.getsockname()[1]
        expected = f"serve: cannot listen on 127.0.0.1 port {port}: Address already in use\n"
        assert run(capsys, "--port", str(port)) == (2, "", expected)


def test_a_missing_extra_is_named_with_the_way_to_get_it(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "starlette", None)
    expected = "serve: starlette not installed; get it with: pip install 'llm-serving-course[serve]'\n"
    assert run(capsys, "--port", "0") == (2, "", expected)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--model", "/no/such/model"], "serve: /no/such/model: no such model; expected smollm2-135m"),
        (
            ["--max-running", "600", "--token-budget", "512"],
            "serve: a budget of 512 tokens a step cannot decode 600 running sequences",
        ),
        (["--host", "no.such.host.invalid"], "serve: cannot listen on no.such.host.invalid port 0"),
    ],
)
def test_what_cannot_be_served_is_one_line_and_status_2(
    capsys: pytest.CaptureFixture[str], options: list[str], message: str
) -> None:
    status, out, err = run(capsys, "--port", "0", *options)
    assert (status, out) == (2, "")
    assert err.splitlines()[-1].startswith(message)


@pytest.mark.model
def test_a_model_that_cannot_answer_ends_the_server_before_it_says_that_it_is_there(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: object) -> None:
        raise RuntimeError("no kernel for this card")

    monkeypatch.setattr("reference_impl.model.fused.FusedLlama.__call__", broken)
    status, out, err = run(capsys, "--port", "0")
    assert (status, out) == (2, "")
    assert "serve: this model cannot answer here: " in err.splitlines()[-1]
    assert "no kernel for this card" in err.splitlines()[-1]


def test_what_asks_for_nothing_is_taken_even_where_it_is_another_servers() -> None:
    inert = {
        "repetition_penalty": 1.0,
        "min_p": 0,
        "stop_token_ids": [],
        "service_tier": "auto",
        "prompt_cache_key": "a",
    }
    service, _ = alphabet_service()
    with serving(service) as url:
        body = {"model": "alphabet", "prompt": "a", "max_tokens": 2} | inert
        assert HTTP.post(f"{url}/v1/completions", json=body).status_code == 200
        body["stop_token_ids"] = [1]
        assert HTTP.post(f"{url}/v1/completions", json=body).status_code == 400
