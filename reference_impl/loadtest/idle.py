"""Has a server forgotten everything after a load test? Reads the /metrics of `serve`.

Every request that was accepted must have ended in some way, and a server without requests holds no KV block. The
metrics are in the text format of Prometheus.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Awaitable, Callable

import httpx

from reference_impl.common.clock import Clock
from reference_impl.loadtest.generator import open_client

_SAMPLE = re.compile(r"(\w+)(\{[^}]*\})? (\S+)")


def parse_metrics(text: str) -> dict[str, float]:
    """Sample by name with its labels, as in `llm_kv_blocks{state="used"}`."""
    samples = (_SAMPLE.fullmatch(line) for line in text.splitlines() if not line.startswith("#"))
    return {match[1] + (match[2] or ""): float(match[3]) for match in samples if match}


def leftovers(metrics: dict[str, float]) -> list[str]:
    """Lists in words what the server still holds: nothing if it is idle. ValueError for metrics of another server."""
    held = {
        "requests running": "llm_requests_running",
        "requests waiting": "llm_requests_waiting",
        "KV blocks in use": 'llm_kv_blocks{state="used"}',
    }
    try:
        found = [f"{metrics[name]:.0f} {words}" for words, name in held.items() if metrics[name]]
        accepted = metrics["llm_requests_accepted_total"]
    except KeyError as error:
        raise ValueError(f"/metrics has no {error.args[0]}; is it the server of this course?") from None
    ended = sum(value for name, value in metrics.items() if name.startswith("llm_requests_ended_total"))
    if ended != accepted:
        found.append(f"{accepted:.0f} requests accepted but {ended:.0f} ended")
    return found


async def wait_until_drained(
    url: str, clock: Clock, patience: float = 30.0, sleep: Callable[[float], Awaitable[None]] = asyncio.sleep
) -> list[str]:
    """Asks until the server holds nothing, for `patience` seconds at most, and returns what is left.

    A cancelled request leaves only after the step under way, so the first answer may be too early.
    """
    end = clock() + patience
    async with open_client() as http:
        while True:
            try:
                text = (await http.get(f"{url}/metrics", timeout=10)).text
            except httpx.HTTPError as error:
                raise ValueError(f"{url}/metrics: {error or type(error).__name__}") from None
            left = leftovers(parse_metrics(text))
            if not left or clock() > end:
                return left
            await sleep(0.2)
