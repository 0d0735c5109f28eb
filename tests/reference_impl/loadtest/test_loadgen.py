"""The load generator: plans that repeat, an open loop, every way in which a request can end, and a soak test."""

from __future__ import annotations

import asyncio
import json
import signal
import socket
import statistics
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from serving_http import HTTP, PATIENCE, ByteTokenizer, alphabet_service, metrics, running, serving, until
from serving_oracle import one_thread  # noqa: F401  (a fixture that is used by being here)
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, PlainTextResponse, Response, StreamingResponse
from starlette.routing import Route

from reference_impl.__main__ import main
from reference_impl.bounds.config import ModelConfig
from reference_impl.engine.config import EngineConfig
from reference_impl.engine.engine import Engine
from reference_impl.engine.metrics import Timeline
from reference_impl.loadtest.generator import Record, Sender, Target, open_client, run_load
from reference_impl.loadtest.idle import leftovers, parse_metrics
from reference_impl.loadtest.report import Report
from reference_impl.loadtest.sse import read_events
from reference_impl.loadtest.summary import Limits
from reference_impl.loadtest.workload import (
    WORDS,
    Arrival,
    Planned,
    Range,
    Workload,
    poisson_arrivals,
    read_prompts,
    read_trace,
)
from reference_impl.model.llama import Llama
from reference_impl.server.app import Service

# --- the plan


def test_poisson_gaps_have_the_mean_and_the_spread_of_an_exponential_distribution() -> None:
    times = [arrival.at for arrival in poisson_arrivals(4.0, 20_000, seed=1)]
    gaps = [later - earlier for earlier, later in zip([0.0, *times], times, strict=False)]
    # mean and deviation are both 1/4; their standard errors over 20,000 gaps are under 0.003
    assert statistics.mean(gaps) == pytest.approx(0.25, abs=0.012)
    assert statistics.pstdev(gaps) == pytest.approx(0.25, abs=0.012)
    assert min(gaps) >= 0


def test_an_infinite_rate_is_all_at_once() -> None:
    assert [arrival.at for arrival in poisson_arrivals(float("inf"), 3, seed=1)] == [0.0, 0.0, 0.0]


def test_a_plan_repeats_for_its_seed_and_one_setting_leaves_the_others() -> None:
    arrivals = poisson_arrivals(1.0, 50, seed=3)
    base = Workload(Range(2, 9), max_tokens=Range(1, 40))
    plan = base.plan(arrivals, seed=3)
    assert base.plan(arrivals, seed=3) == plan
    assert [planned.prompt for planned in base.plan(arrivals, seed=4)] != [planned.prompt for planned in plan]
    with_cancels = replace(base, cancel_fraction=0.5).plan(arrivals, seed=3)
    assert [replace(planned, cancel_after=None) for planned in with_cancels] == plan


def test_lengths_and_cancels_keep_their_bounds() -> None:
    workload = Workload(Range(2, 4), 3, Range(5, 6), cancel_fraction=0.3, cancel_within=2.0)
    plan = workload.plan([Arrival(0.0)] * 2000, seed=0)
    assert {len(planned.prompt.split()) for planned in plan} == {5, 6, 7}
    assert len({tuple(planned.prompt.split()[:3]) for planned in plan}) == 1  # the shared words
    assert {word for planned in plan for word in planned.prompt.split()} <= set(WORDS)
    assert {planned.max_tokens for planned in plan} == {5, 6}
    cancels = [planned.cancel_after for planned in plan if planned.cancel_after is not None]
    assert 520 <= len(cancels) <= 680  # 600, four standard deviations each way
    assert min(cancels) >= 0
    assert max(cancels) <= 2.0


@pytest.mark.parametrize(
    ("name", "text"),
    [
        (
            "ours.jsonl",
            '{"arrival": 12.5, "prompt_tokens": 4, "max_tokens": 7}\n\n'
            '{"arrival": 10, "prompt_tokens": 3, "max_tokens": 5}\n',
        ),
        (
            "azure.csv",
            "TIMESTAMP,ContextTokens,GeneratedTokens\r\n"
            "2023-11-16 18:15:46.6805900,3,5\r\n2023-11-16 18:15:49.1805900,4,7\r\n",
        ),
        (
            "mooncake.jsonl",
            '{"timestamp": 500, "input_length": 3, "output_length": 5, "hash_ids": [0]}\n'
            '{"timestamp": 3000, "input_length": 4, "output_length": 7, "hash_ids": [0]}',
        ),
    ],
)
def test_three_kinds_of_traces_are_read_and_begin_at_zero(tmp_path: Path, name: str, text: str) -> None:
    (tmp_path / name).write_text(text, newline="")
    first, second = read_trace(tmp_path / name)
    assert (first.at, first.prompt_words, first.max_tokens) == (0.0, 3, 5)
    assert second.at == pytest.approx(2.5)
    assert (second.prompt_words, second.max_tokens) == (4, 7)
    assert read_trace(tmp_path / name, time_scale=0.1)[1].at == pytest.approx(0.25)
    planned = Workload().plan([first, second], seed=0)
    assert [(len(p.prompt.split()), p.max_tokens) for p in planned] == [(3, 5), (4, 7)]


def test_a_trace_may_hold_the_prompts_themselves(tmp_path: Path) -> None:
    (tmp_path / "t.jsonl").write_text('{"arrival": 0, "prompt": "Hello \\u2028 there"}')
    (planned,) = Workload().plan(read_trace(tmp_path / "t.jsonl"), seed=0)
    assert planned.prompt == "Hello \u2028 there"


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("t.jsonl", '{"arrival": 1}\n{"arrival": ', "t.jsonl: line 2: Expecting value"),
        ("t.jsonl", '{"when": 1}', 't.jsonl: line 1: no "arrival"'),
        ("t.jsonl", '{"arrival": NaN}', "t.jsonl: line 1: the arrival is nan"),
        ("t.jsonl", '{"arrival": 1, "max_tokens": 0}', "t.jsonl: line 1: max_tokens must be at least 1, got 0"),
        ("t.jsonl", "[1]", "t.jsonl: line 1: expected an object"),
        ("t.jsonl", "\n", "t.jsonl: holds no request"),
        ("t.csv", "TIMESTAMP,ContextTokens\nyesterday,3\n", "t.csv: line 2: Invalid isoformat"),
    ],
)
def test_a_bad_trace_is_named_with_its_line(tmp_path: Path, name: str, text: str, message: str) -> None:
    (tmp_path / name).write_text(text)
    with pytest.raises(ValueError, match=r"t\.") as error:
        read_trace(tmp_path / name)
    assert str(error.value).startswith(f"{tmp_path}/{message}")


def test_prompts_come_from_a_file_a_line_each(tmp_path: Path) -> None:
    (tmp_path / "p.txt").write_text("one\ntwo words\n\n")
    (tmp_path / "p.jsonl").write_text('"one"\n{"prompt": "two\\nlines"}\n')
    assert read_prompts(tmp_path / "p.txt") == ("one", "two words")
    assert read_prompts(tmp_path / "p.jsonl") == ("one", "two\nlines")
    plan = Workload(prompts=("one", "two")).plan([Arrival(0.0)] * 20, seed=0)
    assert {planned.prompt for planned in plan} == {"one", "two"}


# --- the open loop, on a clock of its own


class FakeTime:
    """A clock that moves only when somebody sleeps on it."""

    def __init__(self) -> None:
        self.now = 100.0

    def clock(self) -> float:
        return self.now

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(0)  # the others do what they have to do now
        self.now += seconds


def test_requests_are_sent_in_time_though_none_is_ever_answered_before() -> None:
    time, answered = FakeTime(), asyncio.Event()
    sent: list[float] = []

    async def send(record: Record) -> None:
        sent.append(time.now)
        if len(sent) == 4:
            answered.set()
        await answered.wait()

    plan = [Planned(at, "", 1) for at in (1.0, 1.5, 1.5, 4.0)]
    records = asyncio.run(run_load(plan, send, time.clock, time.sleep))
    assert sent == [101.0, 101.5, 101.5, 104.0]
    assert [record.timeline.arrival for record in records] == [101.0, 101.5, 101.5, 104.0]
    assert [record.lag for record in records] == [0.0] * 4


def test_a_late_generator_counts_latency_from_the_plan_and_reports_its_lateness() -> None:
    time = FakeTime()

    async def slow_to_send(record: Record) -> None:
        time.now += 3.0  # the process was busy
        record.timeline.add(time.now)
        record.timeline.close(time.now)
        record.outcome = "completed"

    records = asyncio.run(run_load([Planned(1.0, "", 1), Planned(1.0, "", 1)], slow_to_send, time.clock, time.sleep))
    assert [record.lag for record in records] == [0.0, 3.0]
    assert [record.timeline.ttft for record in records] == [3.0, 6.0]
    report = Report.of(records, Limits())
    assert report.lag is not None
    assert report.lag.max == 3.0
    assert "warning: this machine sent up to 3.00 s late" in report.table()


# --- server-sent events


def events_of(data: bytes, cuts: Sequence[int]) -> list[str]:
    async def chunks() -> AsyncIterator[bytes]:
        for start, end in zip([0, *cuts], [*cuts, len(data)], strict=True):
            yield data[start:end]

    async def collect() -> list[str]:
        return [event async for event in read_events(chunks())]

    return asyncio.run(collect())


def test_events_are_the_same_wherever_the_network_cuts_them() -> None:
    data = (
        ': ping\n\ndata: {"text":"é\u2028\u0085"}\r\n\r\nevent: x\nid: 3\ndata:two\ndata:  lines\n\n'
        "data: [DONE]\n\ndata: cut off"
    ).encode()
    expected = ['{"text":"é\u2028\u0085"}', "two\n lines", "[DONE]"]
    with_mark = b"\xef\xbb\xbf" + data.removeprefix(b": ping\n\n")
    with_cr = data.replace(b"\r\n", b"\n").replace(b"\n", b"\r")
    for stream in (data, with_mark, with_cr):
        assert events_of(stream, range(1, len(stream))) == expected
        for cut in range(len(stream)):
            assert events_of(stream, [cut]) == expected


# --- one request against servers of every kind


def chunk(text: str = "", finish: str | None = None, usage: int | None = None) -> str:
    body: dict[str, Any] = {"choices": [{"index": 0, "text": text, "finish_reason": finish}], "usage": None}
    if usage is not None:
        body = {"choices": [], "usage": {"prompt_tokens": 2, "completion_tokens": usage}}
    return f"data: {json.dumps(body)}\n\n"


def said(key: str, text: str, finish: str | None = None) -> str:
    """A chunk of the chat endpoint, with its text under `key`."""
    return f"data: {json.dumps({'choices': [{'index': 0, 'delta': {key: text}, 'finish_reason': finish}]})}\n\n"


SCRIPTS: dict[str, list[str]] = {  # the prompt names the stream that is wanted
    "good": [chunk("a"), chunk("b"), chunk(""), chunk("c", "length"), chunk(usage=3), "data: [DONE]\n\n"],
    "no-usage": [chunk("a"), chunk("b", "length"), "data: [DONE]\n\n"],
    "no-done": [chunk("a"), chunk("b", "length")],
    "ended": [chunk("a"), chunk("b"), chunk("", "stop"), chunk(usage=3), "data: [DONE]\n\n"],
    "bundles": [chunk("ab"), chunk("cdef"), chunk("", "length"), chunk(usage=6), "data: [DONE]\n\n"],
    "nothing": [chunk("", "stop"), chunk(usage=1), "data: [DONE]\n\n"],
    "unfinished": [chunk("a"), "data: [DONE]\n\n"],
    "error": [chunk("a"), 'data: {"error": {"message": "out of memory"}}\n\n'],
    "reasoning": [said("reasoning_content", "hm")] * 3 + [said("content", "a"), said("content", "b", "stop")],
    "only-reasoning": [said("reasoning", "hm"), said("reasoning", "hm", "length")],
    "failed": [chunk("a"), chunk("", "error")],
    "aborted": [chunk("a", "abort")],
    "garbage": [chunk("a"), "data: {oops\n\n"],
}


async def scripted(request: Request) -> Response:
    body = await request.json()
    script = body["prompt"]
    if script == "busy":
        return JSONResponse({"error": {"message": "come back later"}}, 429)
    if script == "broken":
        return PlainTextResponse("no JSON", 500)
    if script == "redirect":
        return Response(status_code=307, headers={"location": "http://203.0.113.1/"})

    async def stream() -> AsyncIterator[str]:
        for piece in SCRIPTS.get(script, []):
            yield piece
        if script == "stuck":
            yield chunk("a")
            await asyncio.sleep(PATIENCE)
        if script == "torn":
            yield chunk("a")
            raise RuntimeError("torn")

    return StreamingResponse(stream(), media_type="text/event-stream")


@pytest.fixture(scope="module")
def scripted_url() -> Iterator[str]:
    with running(Starlette(routes=[Route("/v1/completions", scripted, methods=["POST"])])) as (url, _):
        yield url


class Ticks:
    """A clock whose every reading is a second later."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        self.now += 1.0
        return self.now


def send_one(url: str, planned: Planned, **settings: Any) -> Record:
    async def run() -> Record:
        record = Record(planned, Timeline(0.0))
        async with open_client() as http:
            await Sender(Target(url, "m", **settings), http, Ticks())(record)
        return record

    return asyncio.run(run())


@pytest.mark.parametrize(
    ("script", "n_tokens", "times", "tpot"),
    [
        ("good", 3, [1.0, 2.0, 4.0], 1.5),  # the empty chunk is no token
        ("no-usage", 2, [1.0, 2.0], 1.0),
        ("no-done", 2, [1.0, 2.0], 1.0),
        ("ended", 3, [1.0, 2.0], 1.0),  # the third token ended the answer and showed nothing
        ("bundles", 6, [1.0, 2.0], 0.2),  # five of the six tokens came with the second chunk
        ("nothing", 1, [], None),
        ("reasoning", 5, [1.0, 2.0, 3.0, 4.0, 5.0], 1.0),  # tokens of reasoning are tokens
        ("only-reasoning", 2, [1.0, 2.0], 1.0),
    ],
)
def test_tokens_are_timed_by_their_chunks_and_counted_by_the_server(
    scripted_url: str, script: str, n_tokens: int, times: list[float], tpot: float | None
) -> None:
    record = send_one(scripted_url, Planned(0.0, script, 8))
    assert (record.outcome, record.timeline.completed) == ("completed", True)
    assert (record.timeline.n_tokens, record.timeline.times) == (n_tokens, times)
    assert record.timeline.tpot == (None if tpot is None else pytest.approx(tpot))


@pytest.mark.parametrize(
    ("script", "outcome", "words"),
    [
        ("busy", "http 429", "come back later"),
        ("broken", "http 500", "no JSON"),
        ("redirect", "http 307", ""),  # no other address than the one that was given
        ("unfinished", "broken stream", "it ended without a finish_reason"),
        ("torn", "broken stream", "RemoteProtocolError"),
        ("error", "error event", "out of memory"),
        ("failed", "failed answer", "it ended with finish_reason 'error'"),
        ("aborted", "failed answer", "it ended with finish_reason 'abort'"),
        ("garbage", "bad event", "{oops"),
    ],
)
def test_errors_are_told_apart(scripted_url: str, script: str, outcome: str, words: str) -> None:
    record = send_one(scripted_url, Planned(0.0, script, 8))
    assert (record.outcome, record.timeline.completed) == (outcome, False)
    assert words in record.detail


def test_the_answer_after_the_reasoning_is_reported_apart(scripted_url: str) -> None:
    record = send_one(scripted_url, Planned(0.0, "reasoning", 8))
    assert (record.timeline.ttft, record.time_to_answer) == (1.0, 4.0)
    assert "first answer" in Report.of([record], Limits()).table()
    assert send_one(scripted_url, Planned(0.0, "only-reasoning", 8)).time_to_answer is None
    assert "first answer" not in Report.of([send_one(scripted_url, Planned(0.0, "good", 8))], Limits()).table()


def test_a_server_that_is_not_there_is_an_error_of_connection() -> None:
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        port = unused.getsockname()[1]
        assert send_one(f"http://127.0.0.1:{port}", Planned(0.0, "good", 8)).outcome == "connection"


def test_a_stuck_answer_ends_by_its_cancel_or_its_timeout(scripted_url: str) -> None:
    given_up = send_one(scripted_url, Planned(0.0, "stuck", 8, cancel_after=0.5))
    assert (given_up.outcome, given_up.timeline.completed) == ("cancelled", False)
    assert send_one(scripted_url, Planned(0.0, "stuck", 8), timeout=0.5).outcome == "timeout"


# --- the report


def record(at: float, ttft: float, tpot: float, n_tokens: int, outcome: str = "completed") -> Record:
    timeline = Timeline(at)
    for i in range(n_tokens):
        timeline.add(at + ttft + i * tpot)
    timeline.close(at + ttft + (n_tokens - 1) * tpot, completed=outcome == "completed")
    return Record(Planned(at, "", n_tokens), timeline, at + 0.001, outcome, "" if outcome == "completed" else "why")


FOUR = [
    record(0.0, 0.1, 0.02, 11),
    record(1.0, 0.2, 0.02, 11),
    record(2.0, 0.1, 0.20, 11),  # too slow afterwards
    record(4.0, 3.0, 0.02, 1, "http 500"),
]


def test_the_table_has_rates_goodput_percentiles_and_every_kind_of_end() -> None:
    table = Report.of(FOUR, Limits(ttft=0.5, tpot=0.1)).table().splitlines()
    assert table[:5] == [
        "4 requests in 7.0 s: 3 completed, 1 http 500",
        "  http 500: why",
        "offered 1.00 requests/s, completed 0.43 requests/s",
        "output  4.9 tokens/s",
        "goodput 0.29 requests/s within TTFT <= 0.5 s, TPOT <= 0.1 s (50.0% of all)",
    ]
    rows = {line[:14].strip(): line[14:].split() for line in table[6:]}
    assert rows["milliseconds"] == ["mean", "p50", "p90", "p99", "max"]
    assert rows["TTFT"] == ["133.3", "100.0", "180.0", "198.0", "200.0"]
    assert rows["TPOT"] == ["80.0", "20.0", "164.0", "196.4", "200.0"]
    assert rows["client lag"] == ["1.0"] * 5


def test_the_json_holds_every_request_and_no_infinity() -> None:
    data = json.loads(json.dumps(Report.of(FOUR, Limits(ttft=0.5)).as_json(), allow_nan=False))
    assert data["limits"] == {"ttft": 0.5, "tpot": None}
    assert data["outcomes"] == {"completed": 3, "http 500": 1}
    assert data["within_limits"] == 3
    assert [row["outcome"] for row in data["requests"]] == ["completed"] * 3 + ["http 500"]
    assert data["requests"][1]["ttft"] == pytest.approx(0.2)


def test_requests_in_flight_rise_and_fall_to_zero() -> None:
    times, counts = Report.of(FOUR, Limits()).in_flight()
    assert counts == [0, 1, 0, 1, 0, 1, 2, 1, 0]
    assert times == pytest.approx([0, 0, 0.3, 1.0, 1.4, 2.0, 4.0, 4.1, 7.0])


def test_a_report_without_any_completed_request_still_has_a_table_and_a_plot(tmp_path: Path) -> None:
    report = Report.of([record(0.0, 1.0, 1.0, 0, "connection")], Limits())
    assert "TTFT                   -" in report.table()
    report.plot(tmp_path / "none.png")
    assert (tmp_path / "none.png").read_bytes().startswith(b"\x89PNG")


# --- drained or not

DRAINED = {
    "llm_requests_running": 0.0,
    "llm_requests_waiting": 0.0,
    'llm_kv_blocks{state="used"}': 0.0,
    "llm_requests_accepted_total": 5.0,
    'llm_requests_ended_total{finish="stop"}': 3.0,
    'llm_requests_ended_total{finish="cancelled"}': 2.0,
}


@pytest.mark.parametrize(
    ("name", "value", "left"),
    [
        ("llm_requests_running", 0.0, []),
        ("llm_requests_running", 2.0, ["2 requests running"]),
        ("llm_requests_waiting", 1.0, ["1 requests waiting"]),
        ('llm_kv_blocks{state="used"}', 4.0, ["4 KV blocks in use"]),
        ("llm_requests_accepted_total", 6.0, ["6 requests accepted but 5 ended"]),
    ],
)
def test_what_a_server_still_holds_is_named(name: str, value: float, left: list[str]) -> None:
    assert leftovers(DRAINED | {name: value}) == left


def test_the_metrics_of_another_server_are_recognized() -> None:
    with pytest.raises(ValueError, match="/metrics has no llm_requests_running; is it the server of this course"):
        leftovers(parse_metrics('# HELP x y\nvllm:num_requests_running{model="m"} 1.0\n'))


# --- the command


def run(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str, str]:
    status = main(["load", *arguments])
    out, err = capsys.readouterr()
    return status, out, err


def test_the_command_measures_a_server_and_finds_it_drained(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    service, _ = alphabet_service(queue_limit=100)
    with serving(service) as url:
        arguments = ["--url", f"{url}/v1", "--rate", "inf", "--requests", "12", "--prompt-words", "2:5"]
        arguments += ["--max-tokens", "4", "--ignore-eos", "--endpoint", "chat", "--expect-drained"]
        arguments += ["--output", str(tmp_path / "r.json"), "--plot", str(tmp_path / "r.svg")]
        status, out, err = run(capsys, *arguments)
    assert (status, err) == (0, "")
    assert "12 requests in" in out
    assert ": 12 completed\n" in out
    assert out.endswith("drained: nothing runs, waits or holds a block, and every accepted request has ended\n")
    data = json.loads((tmp_path / "r.json").read_text())
    assert data["settings"]["model"] == "alphabet"
    assert [row["tokens"] for row in data["requests"]] == [4] * 12
    assert "<svg" in (tmp_path / "r.svg").read_text()


def test_ctrl_c_prints_and_writes_what_there_is(scripted_url: str, tmp_path: Path) -> None:
    """One answer ends and another hangs; then the user stops the test, before the third is sent."""
    trace, output = tmp_path / "trace.jsonl", tmp_path / "r.json"
    rows = [(0, "good"), (0, "stuck"), (10**6, "good")]
    trace.write_text("\n".join(json.dumps({"arrival": at, "prompt": p, "max_tokens": 4}) for at, p in rows))
    command = [sys.executable, "-m", "reference_impl", "load", "--url", scripted_url, "--model", "m"]
    command += ["--trace", str(trace), "--output", str(output)]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    partial = tmp_path / "r.json.partial"
    until(lambda: partial.exists() and partial.read_text().count("\n") == 1)
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=PATIENCE)
    assert process.returncode == 130, err
    assert "2 of 3 requests were sent" in err
    assert "1 completed, 1 interrupted" in out
    assert [row["outcome"] for row in json.loads(output.read_text())["requests"]] == ["completed", "interrupted"]
    assert not partial.exists()


def test_a_server_that_still_works_is_not_drained(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    from reference_impl.loadtest import idle

    async def at_once(*arguments: Any) -> list[str]:
        return await original(*arguments, patience=0.0)

    original = idle.wait_until_drained
    monkeypatch.setattr(idle, "wait_until_drained", at_once)
    service, model = alphabet_service()
    with serving(service) as url:
        model.hold()
        arguments = ["--url", url, "--rate", "inf", "--requests", "1", "--max-tokens", "4", "--timeout", "0.5"]
        status, out, err = run(capsys, *arguments, "--prompt-words", "2", "--expect-drained")
        model.free()
    assert status == 1
    assert ": 1 timeout\n" in out
    assert err == "load: the server is not drained: 1 requests waiting, 1 requests accepted but 0 ended\n"


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--trace", "/no/such/trace.jsonl"], "load: [Errno 2] No such file or directory: '/no/such/trace.jsonl'"),
        (["--output", "/no/such/folder/x.json"], "load: /no/such/folder/x.json: there is no folder /no/such/folder"),
        (["--api-key-env", "NO_SUCH_KEY"], "load: --api-key-env NO_SUCH_KEY: the environment has no such variable"),
        (["--url", "http://127.0.0.1:9"], "load: http://127.0.0.1:9/v1/models: All connection attempts failed"),
    ],
)
def test_what_cannot_be_done_is_one_line_and_status_2(
    capsys: pytest.CaptureFixture[str], options: list[str], message: str
) -> None:
    status, out, err = run(capsys, *options)
    assert (status, out, err) == (2, "", message + "\n")


@pytest.mark.parametrize(
    "options",
    [
        ["--rate", "0"],
        ["--rate", "1", "--trace", "x"],
        ["--url", "ftp://x"],
        ["--url", "127.0.0.1:8000"],
        ["--max-tokens", "5:4"],
        ["--cancel-fraction", "1.5"],
    ],
)
def test_options_without_sense_are_refused(capsys: pytest.CaptureFixture[str], options: list[str]) -> None:
    with pytest.raises(SystemExit) as exit_info:
        main(["load", *options])
    assert exit_info.value.code == 2
    assert capsys.readouterr().err.count("\n") == 1


def test_a_missing_extra_is_named_with_the_way_to_get_it(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "httpx", None)
    expected = "load: httpx not installed; get it with: pip install 'llm-serving-course[serve]'\n"
    assert run(capsys) == (2, "", expected)


# --- soak


def test_two_hundred_requests_with_random_cancels_leave_no_block_and_lose_no_request() -> None:
    """A real decoder under more load than its cache holds, so that requests wait, share, are preempted and given up."""
    shape = ModelConfig("tiny", 2, 16, 4, 2, 4, 24, vocab_size=256, max_context=640)
    model = Llama(shape).randomize(torch.Generator().manual_seed(5), std=0.4)
    config = EngineConfig(max_running=8, token_budget=64, n_blocks=40)
    engine = Engine.for_llama(model, config, ByteTokenizer())
    service = Service(engine, ByteTokenizer(), "tiny", queue_limit=1000)
    workload = Workload(Range(4, 24), 6, Range(8, 80), cancel_fraction=0.4, cancel_within=3.0)
    plan = workload.plan(poisson_arrivals(25.0, 200, seed=9), seed=9)

    async def load(url: str) -> list[Record]:
        async with open_client() as http:
            sender = Sender(Target(url, "tiny", ignore_eos=True), http, engine.clock)
            return await run_load(plan, sender, engine.clock)

    with serving(service) as url:
        records = asyncio.run(load(url))
        until(lambda: leftovers(metrics(url)) == [])
        found = metrics(url)
        assert HTTP.get(f"{url}/health").status_code == 200

    n_cancelled = sum(record.outcome == "cancelled" for record in records)
    n_completed = sum(record.outcome == "completed" for record in records)
    assert n_cancelled + n_completed == 200, {record.outcome: record.detail for record in records}
    for record in records:
        if record.outcome == "completed":
            assert record.timeline.n_tokens == record.planned.max_tokens
        else:
            assert record.planned.cancel_after is not None
    # a client that leaves as the last token comes sees its cancel, the server a completed request
    assert found['llm_requests_ended_total{finish="length"}'] >= n_completed
    ended = {name: value for name, value in found.items() if name.startswith("llm_requests_ended_total")}
    assert sum(ended.values()) == found["llm_requests_accepted_total"] <= 200
    assert ended['llm_requests_ended_total{finish="error"}'] == 0
    assert found["llm_preemptions_total"] > 0
    assert found["llm_prefix_shared_tokens_total"] > 0
    assert found['llm_kv_blocks{state="used"}'] == 0
    assert found['llm_kv_blocks{state="evictable"}'] + found['llm_kv_blocks{state="free"}'] == 40


def test_server_load_and_soak_work_as_commands_and_a_signal_ends_the_server(
    tmp_path: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Three processes, as a user starts them."""
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    from tokenizers import Tokenizer as Backend
    from tokenizers import decoders, models, pre_tokenizers

    from reference_impl.checkpoints.tokenizer import Tokenizer

    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    backend = Backend(models.BPE(vocab={letter: i for i, letter in enumerate(alphabet)}, merges=[]))
    backend.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    backend.decoder = decoders.ByteLevel()
    shape = ModelConfig("noise", 1, 16, 2, 1, 8, 24, vocab_size=256, max_context=640)
    model = Llama(shape).randomize(torch.Generator().manual_seed(5))
    from reference_impl.checkpoints.folder import save

    save(tmp_path / "noise", shape, model.views().items(), Tokenizer(backend))

    status = main(["soak", "--model", str(tmp_path / "noise"), "--minutes", "0.01", "--requests", "10"])
    out, err = capfd.readouterr()
    assert status == 0
    assert "10 requests in" in out
    assert out.endswith("drained: nothing runs, waits or holds a block, and every accepted request has ended\n")
    assert "serve: noise at http://127.0.0.1:" in err
    assert err.endswith("serve: stopped\n")
