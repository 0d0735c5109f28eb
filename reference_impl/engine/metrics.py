"""How serving speed is measured: TTFT, TPOT, ITL, end-to-end latency, throughput and goodput.

The one idea: keep the raw times of a request (`Timeline`) and derive every figure from them afterwards. Times are
seconds on whatever clock the caller passed to the engine or load generator; nothing here reads a clock by itself.
Definitions follow the MLPerf and vLLM serving benchmarks; goodput is that of Zhong et al. 2024 ("DistServe", section
2). Standard library only, except for the GPU clock.
"""

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field

Clock = Callable[[], float]  # seconds from an arbitrary zero


@dataclass
class Timeline:
    """One request: when it arrived, when it delivered what, and when it ended.

    `add` takes one delivery: `n_tokens` tokens at `time`. A delivery that shows nothing (half a character, text held
    back because it may become a stop string, the empty first chunk of an HTTP stream) counts its tokens but is not
    what the user waits for: `visible=False`.
    """

    arrival: float
    times: list[float] = field(default_factory=list)  # of visible deliveries
    n_tokens: int = 0
    end: float | None = None  # None while it runs
    completed: bool = False  # ended by itself: not cancelled, refused or failed
    _n_first: int = 0  # tokens up to and including the first visible delivery
    _n_last: int = 0  # and the last visible one

    def add(self, time: float, n_tokens: int = 1, visible: bool = True) -> None:
        self.n_tokens += n_tokens
        if visible:
            self.times.append(time)
            self._n_last = self.n_tokens
            if len(self.times) == 1:
                self._n_first = self.n_tokens

    def close(self, time: float, completed: bool = True) -> None:
        self.end, self.completed = time, completed

    @property
    def ttft(self) -> float | None:
        """Time to first token: from arrival (queueing included) to the first delivery that shows something; None
        before that.
        """
        return self.times[0] - self.arrival if self.times else None

    @property
    def tpot(self) -> float | None:
        """Time per output token after the first: the mean over n − 1 intervals, so undefined (None) for fewer than 2
        tokens.

        Intervals are counted from the first visible delivery to the last: where the first carried several tokens only
        those after it count, and an end token that shows nothing does not.
        """
        intervals = self._n_last - self._n_first
        return (self.times[-1] - self.times[0]) / intervals if intervals > 0 else None

    @property
    def itl(self) -> list[float]:
        """Inter-token latencies: the pauses between one visible delivery and the next.

        Their largest is the worst stall.
        """
        return [later - earlier for earlier, later in zip(self.times, self.times[1:], strict=False)]

    @property
    def latency(self) -> float | None:
        """End-to-end latency, arrival to end; None while it runs."""
        return self.end - self.arrival if self.end is not None else None


@dataclass(frozen=True)
class Limits:
    """A service-level objective, in seconds.

    A limit that a request has no figure for (TPOT of a single token) is kept.
    """

    ttft: float = math.inf
    tpot: float = math.inf

    def kept_by(self, timeline: Timeline) -> bool:
        if not timeline.completed or timeline.ttft is None:
            return False
        return timeline.ttft <= self.ttft and (timeline.tpot is None or timeline.tpot <= self.tpot)


def percentile(values: Sequence[float], percent: float) -> float:
    """The `percent`-th percentile, interpolated linearly between the two nearest ranks (type 7 of Hyndman and Fan
    1996, NumPy's default).

    Raises ValueError without values or outside 0–100.
    """
    if not values:
        raise ValueError("a percentile of no values")
    if not 0 <= percent <= 100:
        raise ValueError(f"percent must be from 0 to 100, got {percent}")
    ordered = sorted(values)
    rank = (len(ordered) - 1) * percent / 100
    below = math.floor(rank)
    above = min(below + 1, len(ordered) - 1)
    return ordered[below] + (rank - below) * (ordered[above] - ordered[below])


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
        """None where no request has the figure; requests without it are left out."""
        known = [value for value in values if value is not None]
        if not known:
            return None
        p50, p90, p99 = (percentile(known, percent) for percent in (50, 90, 99))
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
    goodput: float  # completed requests per second that kept the limits
    ttft: Spread | None
    tpot: Spread | None
    itl: Spread | None
    latency: Spread | None


def summarize(timelines: Iterable[Timeline], limits: Limits | None = None) -> Summary:
    """All figures of one run. Latencies are those of completed requests; tokens count whoever produced them.

    Raises ValueError without a request. A run that took no time at all has rates of 0.
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


def synchronized(clock: Clock, device: object) -> Clock:
    """A clock that first waits for `device` to finish its queued work: a GPU returns from a call before it has
    computed anything.

    On the CPU, where calls return when they are done, this is `clock` itself.
    """
    import torch

    if torch.device(str(device)).type != "cuda":
        return clock

    def wait_and_read() -> float:
        torch.cuda.synchronize(torch.device(str(device)))
        return clock()

    return wait_and_read
