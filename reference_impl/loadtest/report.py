"""What a load test found: a table for people, JSON for programs, a plot.

It gives percentiles, not means alone, because users judge a service by its slow answers. It gives goodput, because
tokens that come too late do not count. `engine.metrics` defines the figures.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from reference_impl.loadtest.generator import Record
from reference_impl.loadtest.summary import Limits, Spread, Summary, summarize

LATE = 0.1  # seconds; a generator that is later than this measures itself, not the server


@dataclass(frozen=True)
class Report:
    """Figures of one load test; times in seconds."""

    summary: Summary
    limits: Limits
    outcomes: dict[str, int]  # how many requests ended in which way
    examples: dict[str, str]  # the first words of each kind of error
    offered: float  # requests per second that the plan asked for
    lag: Spread | None  # how late this process sent
    records: tuple[Record, ...]

    @classmethod
    def of(cls, records: Sequence[Record], limits: Limits) -> Report:
        """ValueError without a record."""
        summary = summarize([record.timeline for record in records], limits)
        span = max(record.planned.at for record in records)
        return cls(
            summary,
            limits,
            dict(Counter(record.outcome for record in records).most_common()),
            {record.outcome: record.detail for record in reversed(records) if record.detail},
            len(records) / span if span > 0 else float("inf"),
            Spread.of(record.lag for record in records),
            tuple(records),
        )

    @property
    def n_kept(self) -> int:
        """Requests that completed within the limits."""
        return sum(self.limits.kept_by(record.timeline) for record in self.records)

    def table(self) -> str:
        return "\n".join(self._lines())

    def _lines(self) -> Iterator[str]:
        summary = self.summary
        ends = ", ".join(f"{n} {outcome}" for outcome, n in self.outcomes.items())
        yield f"{summary.n_requests} requests in {summary.duration:.1f} s: {ends}"
        for outcome, words in self.examples.items():
            yield f"  {outcome}: {' '.join(words.split())[:200]}"
        yield f"offered {self.offered:.2f} requests/s, completed {summary.requests_per_second:.2f} requests/s"
        yield f"output  {summary.tokens_per_second:.1f} tokens/s"
        share = self.n_kept / summary.n_requests
        bounds = f"TTFT <= {self.limits.ttft:g} s, TPOT <= {self.limits.tpot:g} s"
        yield f"goodput {summary.goodput:.2f} requests/s within {bounds} ({share:.1%} of all)"
        yield ""
        yield f"{'milliseconds':<14}" + "".join(f"{name:>10}" for name in ("mean", "p50", "p90", "p99", "max"))
        for name, spread in self._spreads().items():
            figures = [None] * 5 if spread is None else [spread.mean, spread.p50, spread.p90, spread.p99, spread.max]
            yield f"{name:<14}" + "".join(f"{'-' if x is None else format(x * 1000, '.1f'):>10}" for x in figures)
        if self.lag is not None and self.lag.p99 > LATE:
            yield f"warning: this machine sent up to {self.lag.max:.2f} s late; lower the rate or use another machine"

    def _spreads(self) -> dict[str, Spread | None]:
        s = self.summary
        found = {"TTFT": s.ttft, "TPOT": s.tpot, "ITL": s.itl, "end to end": s.latency, "client lag": self.lag}
        if any(record.time_to_answer != record.timeline.ttft for record in self.records):
            found["first answer"] = Spread.of(r.time_to_answer for r in self.records if r.timeline.completed)
        return found

    def as_json(self) -> dict[str, Any]:
        """All figures and every request; limits that are not set are null."""
        limits = {name: value if value < float("inf") else None for name, value in asdict(self.limits).items()}
        return {
            "limits": limits,
            "outcomes": self.outcomes,
            "errors": self.examples,
            "offered": self.offered if self.offered < float("inf") else None,
            "within_limits": self.n_kept,
            "summary": asdict(self.summary),
            "lag": None if self.lag is None else asdict(self.lag),
            "requests": [row(record) for record in self.records],
        }

    def plot(self, path: Path) -> None:
        """Latencies as cumulative shares, and the requests in flight over time. Needs matplotlib."""
        from matplotlib.figure import Figure

        figure = Figure(figsize=(11, 4), layout="constrained")
        left, right = figure.subplots(1, 2)
        done = [record.timeline for record in self.records if record.timeline.completed]
        for name, values in (
            ("TTFT", [t.ttft for t in done]),
            ("TPOT", [t.tpot for t in done]),
            ("end to end", [t.latency for t in done]),
        ):
            known = sorted(value for value in values if value is not None)
            left.step(known, [(i + 1) / len(known) for i in range(len(known))], where="post", label=name)
        left.set(xscale="log", xlabel="seconds", ylabel="share of completed requests", ylim=(0, 1))
        left.legend()
        times, in_flight = self.in_flight()
        right.step(times, in_flight, where="post")
        right.set(xlabel="seconds since the first arrival", ylabel="requests in flight", ylim=(0, None))
        figure.savefig(path, dpi=120)

    def in_flight(self) -> tuple[list[float], list[int]]:
        """Times at which a request arrived or ended, and how many were between the two from then on."""
        start = min(record.timeline.arrival for record in self.records)
        changes = [(record.timeline.arrival - start, 1) for record in self.records]
        changes += [(record.timeline.end - start, -1) for record in self.records if record.timeline.end is not None]
        times, counts, n = [0.0], [0], 0
        for time, change in sorted(changes):
            n += change
            times.append(time)
            counts.append(n)
        return times, counts


def row(record: Record) -> dict[str, Any]:
    """One request as JSON; times in seconds."""
    timeline = record.timeline
    return {
        "at": record.planned.at,
        "lag": record.lag,
        "outcome": record.outcome,
        "prompt_tokens": record.prompt_tokens,
        "tokens": timeline.n_tokens,
        "ttft": timeline.ttft,
        "time_to_answer": record.time_to_answer,
        "tpot": timeline.tpot,
        "latency": timeline.latency,
    }
