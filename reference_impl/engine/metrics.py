"""One request's times: TTFT (time to first token), TPOT (per output token), ITL (between tokens), end-to-end latency.

A `Timeline` keeps the raw times, and every figure is derived from them afterwards. Times are seconds on the clock that
the caller passed to the engine or the load generator. Definitions follow the MLPerf and vLLM serving benchmarks.
Standard library only. `loadtest.summary` turns the timelines of many requests into percentiles and goodput.
"""

from dataclasses import dataclass, field


@dataclass
class Timeline:
    """One request: when it arrived, when it delivered what, and when it ended.

    `add` notes one delivery: `n_tokens` tokens at `time`. A delivery can show nothing: half a character, text held back
    because it may become a stop string, the empty first chunk of an HTTP stream. Then `visible=False`: its tokens
    count, but users still wait for the first text.
    """

    arrival: float
    times: list[float] = field(default_factory=list)  # of visible deliveries
    n_tokens: int = 0
    end: float | None = None  # None while it runs
    completed: bool = False  # not cancelled, refused or failed
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
        """Time to first token: from arrival, queueing included, to the first visible delivery. None before that."""
        return self.times[0] - self.arrival if self.times else None

    @property
    def tpot(self) -> float | None:
        """Time per output token after the first: the mean of n − 1 intervals, so None for fewer than 2 tokens.

        Intervals run from the first visible delivery to the last. Tokens that came with the first delivery do not
        count, nor does an end token that shows nothing.
        """
        intervals = self._n_last - self._n_first
        return (self.times[-1] - self.times[0]) / intervals if intervals > 0 else None

    @property
    def itl(self) -> list[float]:
        """Inter-token latencies: the pauses between visible deliveries. The largest is the worst stall."""
        return [later - earlier for earlier, later in zip(self.times, self.times[1:], strict=False)]

    @property
    def latency(self) -> float | None:
        """End-to-end latency, arrival to end; None while it runs."""
        return self.end - self.arrival if self.end is not None else None
