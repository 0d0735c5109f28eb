"""The command `load`: sends open-loop load to any server with the interface of the OpenAI API, and measures it.

    python -m reference_impl load [--url http://127.0.0.1:8000] [--rate 2]

It sends to the given address and to no other. While it runs, each request that ends becomes a line of OUTPUT.partial,
so no measurement is lost however the run ends. Ctrl-C prints and writes the results so far.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import math
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from reference_impl.common import cli, extras
from reference_impl.loadtest.summary import Limits
from reference_impl.loadtest.workload import Arrival, Range, Workload, poisson_arrivals, read_prompts, read_trace

if TYPE_CHECKING:
    from reference_impl.loadtest.generator import Record

INTERRUPTED = 130  # as a shell reports Ctrl-C
DEFAULT_RATE, DEFAULT_REQUESTS = 1.0, 100


def _parser() -> cli.Parser:
    parser = cli.parser("load", "Sends requests at their own pace to any OpenAI-compatible server, and measures.")
    parser.add_argument("--url", type=_url, default="http://127.0.0.1:8000", help="server, without /v1 (this machine)")
    parser.add_argument("--model", help="default: the first that the server lists")
    parser.add_argument("--endpoint", choices=["completions", "chat"], default="completions")
    parser.add_argument("--api-key-env", metavar="NAME", help="environment variable that holds the server's key")
    when = parser.add_argument_group("when").add_mutually_exclusive_group()
    when.add_argument("--rate", type=_rate, help="requests a second on average, Poisson arrivals (1); inf: all at once")
    when.add_argument(
        "--trace", type=Path, help="arrival times from a file: .jsonl (this course's, Mooncake) or .csv (Azure)"
    )
    parser.add_argument("--time-scale", type=cli.number_up_to(1e6), default=1.0, help="stretches the trace's times (1)")
    parser.add_argument("--requests", type=cli.whole_number, help="how many (100, or all of the trace)")
    what = parser.add_argument_group("what")
    what.add_argument("--prompt-words", type=_range, default=Range(32, 128), metavar="N or LOW:HIGH", help="(32:128)")
    what.add_argument("--shared-words", type=cli.count, default=0, help="words that all prompts begin with (0)")
    what.add_argument("--prompts", type=Path, help="file with one prompt a line, instead of made ones")
    what.add_argument("--max-tokens", type=_range, default=Range(16, 128), metavar="N or LOW:HIGH", help="(16:128)")
    what.add_argument("--ignore-eos", action="store_true", help="answers of full length (an extension of the API)")
    what.add_argument("--temperature", type=_temperature, default=0.0, help="(0)")
    what.add_argument("--cancel-fraction", type=_share, default=0.0, help="share of requests that are given up (0)")
    what.add_argument("--cancel-within", type=cli.number_up_to(1e6), default=5.0, help="seconds after sending (5)")
    what.add_argument("--seed", type=cli.count, default=0, help="of arrivals, prompts, lengths and cancels (0)")
    what.add_argument("--timeout", type=cli.number_up_to(1e6), default=600.0, help="seconds for a whole answer (600)")
    report = parser.add_argument_group("report")
    report.add_argument("--slo-ttft", type=cli.number_up_to(1e6), default=math.inf, help="seconds; for goodput")
    report.add_argument("--slo-tpot", type=cli.number_up_to(1e6), default=math.inf, help="seconds; for goodput")
    report.add_argument("--output", type=Path, metavar="FILE", help="all figures and every request as JSON")
    report.add_argument("--plot", type=Path, metavar="FILE", help="latencies and requests in flight (.png, .svg, .pdf)")
    report.add_argument(
        "--expect-drained", action="store_true", help="fail unless the server (this course's) holds nothing afterwards"
    )
    return parser


def main(arguments: list[str]) -> int:
    """`python -m reference_impl load`.

    Status 1: nothing was completed, or the server is not drained as expected. Status 130: Ctrl-C.
    """
    options = _parser().parse_args(arguments)
    extras.require("serve", "httpx")
    if options.plot is not None:
        extras.require("lab", "matplotlib")
    for path in (options.output, options.plot):
        if path is not None and not path.parent.is_dir():
            raise ValueError(f"{path}: there is no folder {path.parent}")
    return asyncio.run(_run(options))


async def _run(options: argparse.Namespace) -> int:
    from tqdm import tqdm

    from reference_impl.loadtest.generator import Sender, Target, first_model, open_client, run_load
    from reference_impl.loadtest.idle import wait_until_drained
    from reference_impl.loadtest.report import Report

    workload = Workload(
        options.prompt_words,
        options.shared_words,
        options.max_tokens,
        read_prompts(options.prompts) if options.prompts is not None else (),
        options.cancel_fraction,
        options.cancel_within,
    )
    plan = workload.plan(_arrivals(options), options.seed)
    headers = _headers(options.api_key_env)
    model = options.model or await first_model(options.url, headers)
    target = Target(
        options.url, model, options.endpoint, options.temperature, options.ignore_eos, options.timeout, headers
    )
    clock = time.perf_counter
    records: list[Record] = []
    interrupted = False
    with tqdm(total=len(plan), unit="request", disable=None) as bar, _kept_lines(options.output) as keep:

        def count(record: Record) -> None:
            records.append(record)
            keep(record)
            bar.update()

        try:
            async with open_client() as http:
                await run_load(plan, Sender(target, http, clock), clock, on_end=count)
        except asyncio.CancelledError:  # how asyncio passes Ctrl-C on
            interrupted = True
    if interrupted:
        print(f"load: interrupted; {len(records)} of {len(plan)} requests were sent", file=sys.stderr)
        if not records:
            return INTERRUPTED
    records.sort(key=lambda record: record.planned.at)
    report = Report.of(records, Limits(options.slo_ttft, options.slo_tpot))
    print(report.table())
    if options.output is not None:
        settings = {name: str(value) for name, value in vars(options).items() if value is not None}
        options.output.write_text(json.dumps({"settings": settings | {"model": model}} | report.as_json(), indent=1))
        _partial(options.output).unlink(missing_ok=True)
    if options.plot is not None:
        report.plot(options.plot)
    if interrupted:
        return INTERRUPTED
    if options.expect_drained:
        left = await wait_until_drained(options.url, clock)
        if left:
            print(f"load: the server is not drained: {', '.join(left)}", file=sys.stderr)
            return 1
        print("drained: nothing runs, waits or holds a block, and every accepted request has ended")
    return 0 if report.summary.n_completed else 1


def _partial(output: Path) -> Path:
    return output.with_name(f"{output.name}.partial")


@contextmanager
def _kept_lines(output: Path | None) -> Iterator[Callable[[Record], None]]:
    """What writes each request that ends as a line of JSON beside the output."""
    from reference_impl.loadtest.report import row

    if output is None:
        yield lambda record: None
        return
    with _partial(output).open("w", encoding="utf-8", buffering=1) as file:
        yield lambda record: print(json.dumps(row(record)), file=file)


def _arrivals(options: argparse.Namespace) -> list[Arrival]:
    if options.trace is not None:
        return read_trace(options.trace, options.time_scale)[: options.requests]
    rate = DEFAULT_RATE if options.rate is None else options.rate
    return poisson_arrivals(rate, options.requests or DEFAULT_REQUESTS, options.seed)


def _headers(variable: str | None) -> dict[str, str]:
    if variable is None:
        return {}
    return {"Authorization": f"Bearer {cli.secret(variable, '--api-key-env')}"}


def _url(text: str) -> str:
    try:
        parts = urlsplit(text)
        usable = parts.scheme in ("http", "https") and bool(parts.hostname) and (parts.port is None or parts.port > 0)
    except ValueError:
        usable = False
    if not usable:
        raise argparse.ArgumentTypeError(f"expected an address such as http://127.0.0.1:8000, got {cli.shown(text)}")
    return text.rstrip("/").removesuffix("/v1")


def _rate(text: str) -> float:
    return math.inf if text == "inf" else cli.number_up_to(1e6)(text)


def _share(text: str) -> float:
    return 0.0 if text in ("0", "0.0") else cli.number_up_to(1.0)(text)


def _temperature(text: str) -> float:
    return 0.0 if text in ("0", "0.0") else cli.number_up_to(2.0)(text)


def _range(text: str) -> Range:
    low, colon, high = text.partition(":")
    found = Range(cli.whole_number(low), cli.whole_number(high if colon else low))
    if found.low > found.high:
        raise argparse.ArgumentTypeError(f"expected LOW:HIGH with LOW at most HIGH, got {cli.shown(text)}")
    return found
