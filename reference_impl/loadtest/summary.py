"""The figures of a whole run: percentiles of TTFT, TPOT, ITL and latency, throughput, and goodput.

Goodput counts only the requests that kept their limits (Zhong et al. 2024, "DistServe", section 2).
"""

import math
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from reference_impl.engine.metrics import Timeline


@dataclass(frozen=True)
class Limits:
    """A service-level objective, in seconds. A request without a figure (TPOT of a single token) keeps that limit."""

    ttft: float = math.inf
    tpot: float = math.inf

    def kept_by(self, timeline: Timeline) -> bool:
        if not timeline.completed or timeline.ttft is None:
            return False
        return timeline.ttft <= self.ttft and (timeline.tpot is None or timeline.tpot <= self.tpot)


@dataclass(frozen=True)
class Spread:
    """Mean and percentiles of one figure over many requests, in seconds."""

    mean: float
    p50: float
    p90: float
    p99: float
    max: float

    @classmethod
    def of(cls, values: Iterable[float | None]) -> "Spread | None":
        """The spread of the values there are; None if no request has the figure."""
        known = [value for value in values if value is not None]
        if not known:
            return None
        p50, p90, p99 = np.percentile(known, (50, 90, 99)).tolist()
        return cls(sum(known) / len(known), p50, p90, p99, max(known))


@dataclass(frozen=True)
class Summary:
    """Figures of one run. Rates are per second of `duration`, from the first arrival to the last end (or delivery)."""

    n_requests: int
    n_completed: int
    n_tokens: int
    duration: float  # seconds
    tokens_per_second: float
    requests_per_second: float  # completed ones
    goodput: float  # completed requests within the limits, per second
    ttft: Spread | None
    tpot: Spread | None
    itl: Spread | None
    latency: Spread | None


def summarize(timelines: Iterable[Timeline], limits: Limits | None = None) -> Summary:
    """All figures of one run. Latencies are those of completed requests, tokens those of all requests.

    ValueError without a request. A run that took no time at all has rates of 0.
    """
    timelines = list(timelines)
    if not timelines:
        raise ValueError("no requests to summarize")
    limits = limits or Limits()
    completed = [timeline for timeline in timelines if timeline.completed]
    last = max(max([*t.times[-1:], t.arrival if t.end is None else t.end]) for t in timelines)
    duration = last - min(timeline.arrival for timeline in timelines)
    n_tokens = sum(timeline.n_tokens for timeline in timelines)

    def rate(count: int) -> float:
        return count / duration if duration > 0 else 0.0

    return Summary(
        n_requests=len(timelines),
        n_completed=len(completed),
        n_tokens=n_tokens,
        duration=duration,
        tokens_per_second=rate(n_tokens),
        requests_per_second=rate(len(completed)),
        goodput=rate(sum(map(limits.kept_by, completed))),
        ttft=Spread.of(timeline.ttft for timeline in completed),
        tpot=Spread.of(timeline.tpot for timeline in completed),
        itl=Spread.of(pause for timeline in completed for pause in timeline.itl),
        latency=Spread.of(timeline.latency for timeline in completed),
    )
