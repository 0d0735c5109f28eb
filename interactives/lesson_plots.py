"""The lessons' still plots: each takes what a lesson computed or measured, and shows one figure.

A lesson's cell then says what is shown and not how it is drawn. One measured series and one bound have the same colours
in every plot, and those differ for readers who cannot tell red from green.
"""

from collections.abc import Mapping, Sequence

import matplotlib.pyplot as plt
from matplotlib.axes import Axes

from reference_impl.bounds.arithmetic import best_draft_length, speculative_speedup

BLUE, ORANGE, GREEN, BROWN, GREY, PALE = "#0072B2", "#D55E00", "#009E73", "#9A6700", "#555555", "#CCCCCC"


def plot_passes(sizes: Sequence[int], bound: Sequence[float], measured: Sequence[float]) -> None:
    """Seconds of a pass over so many tokens, as the bound says and as measured."""
    axes = _axes()
    axes.loglog(sizes, [1000 * t for t in bound], "--", color=GREY, label="bound")
    axes.loglog(sizes, [1000 * t for t in measured], "o-", color=BLUE, markersize=4, label="measured")
    axes.set_xticks(sizes, list(map(str, sizes)))
    _finish(axes, "tokens in the pass", "milliseconds", legend=True)


def plot_batches(batches: Sequence[int], measured: Sequence[float]) -> None:
    """Left the seconds of a step by batch size, right the tokens per second, beside ideal scaling."""
    _, (left, right) = plt.subplots(1, 2, figsize=(7, 3.4), dpi=100, layout="constrained")
    rates = [batch / t for batch, t in zip(batches, measured, strict=True)]
    left.plot(batches, [1000 * t for t in measured], "o-", color=ORANGE, markersize=4)
    left.set_ylim(0, 1200 * max(measured))
    right.plot(batches, rates, "o-", color=BLUE, markersize=4, label="measured")
    right.plot(batches, [batch * rates[0] for batch in batches], "--", color=GREY, label="ideal")
    right.set_ylim(0, 1.3 * max(rates))
    for axes, label in ((left, "milliseconds per step"), (right, "tokens per second")):
        axes.set_xticks(batches)
        _label(axes, "batch", label)
    right.legend(frameon=False)
    plt.show()


def plot_timelines(lengths: Sequence[int], plans: Mapping[str, Sequence[int]]) -> None:
    """When each request holds a slot, by its finish step under "static" and "continuous"; idle parts are pale."""
    _, both = plt.subplots(1, 2, sharex=True, sharey=True, figsize=(7, 3.4), dpi=100, layout="constrained")
    for axes, (name, finish) in zip(both, plans.items(), strict=True):
        before = 0
        for i, (length, end) in enumerate(zip(lengths, finish, strict=True)):
            if name == "static" and end != finish[max(0, i - 1)]:
                before = finish[i - 1]
            start = before if name == "static" else end - length
            axes.barh(i + 1, end - start, left=start, color=PALE)
            axes.barh(i + 1, length, left=start, color=BLUE)
        axes.set_title(name, fontsize=10)
        axes.set_xlabel("step")
        axes.set_xticks(range(0, 14, 2))
    both[0].set_ylabel("request")
    both[0].invert_yaxis()
    plt.show()


def plot_speedups(alphas: Sequence[float], cost: float, longest: int = 12) -> None:
    """Speed-up against the draft length, one curve for each acceptance rate, checking as cheap as one token."""
    axes = _axes()
    for alpha, color in zip(alphas, (ORANGE, BROWN, BLUE, GREEN), strict=False):
        gains = [speculative_speedup(alpha, k, cost) for k in range(longest + 1)]
        best = best_draft_length(alpha, cost)
        axes.plot(range(longest + 1), gains, "o-", color=color, markersize=3)
        axes.text(best, gains[best] + 0.06, f"α = {alpha}", color=color, ha="center", fontsize=9)
    axes.axhline(1, color=GREY, linewidth=0.8)
    axes.set_ylim(0.8, 3.9)
    _finish(axes, "drafted tokens k", f"speed-up, draft cost {cost}")


def plot_waits(waits: Mapping[str, Sequence[float]]) -> None:
    """Seconds to the first token of each request, in order of arrival, one line for each load."""
    axes = _axes()
    for (label, seconds), color, marker in zip(waits.items(), (BLUE, ORANGE), "os", strict=True):
        axes.plot(range(1, len(seconds) + 1), seconds, marker + "-", color=color, label=label)
    axes.set_ylim(0)
    axes.set_xticks([1, 5, 10, 15, 20])
    _finish(axes, "request, by arrival", "seconds to the first token", legend=True)


def plot_rates(offered: Sequence[float], completed: Sequence[float]) -> None:
    """Requests per second that a server completed against those that were sent."""
    axes = _axes()
    axes.plot(offered, offered, "--", color=GREY, label="all of them")
    axes.plot(offered, completed, "o-", color=BLUE, label="completed")
    axes.set_ylim(0, 1.4 * max(completed))
    _finish(axes, "requests sent per second", "requests completed per second", legend=True)


def plot_channel_errors(sizes: Sequence[float], errors: Mapping[str, Sequence[float]]) -> None:
    """Relative error of each channel in percent against its size, one series for each way of sharing scales."""
    axes = _axes()
    for (label, values), marker, color in zip(errors.items(), "os^", (ORANGE, BLUE, GREEN), strict=True):
        axes.loglog(sizes, values, marker, color=color, markersize=4, label=label)
    axes.set_xticks([0.01, 0.1, 1], ["0.01", "0.1", "1"])
    axes.set_yticks([0.5, 1, 10, 100], ["0.5", "1", "10", "100"])
    _finish(axes, "size of the channel (RMS of its weights)", "relative error (%)", legend=True)


def plot_divergence(rows: Mapping[str, Mapping[str, float]]) -> None:
    """KL divergence against bits per weight of a quality table's rows, one marker for each method."""
    axes = _axes()
    for method, marker, color in (("rounding", "o", ORANGE), ("awq", "^", GREEN), ("gptq", "s", BLUE)):
        chosen = [row for name, row in rows.items() if name.endswith(method)]
        bits = [row["bits"] for row in chosen]
        axes.semilogy(bits, [row["kl"] for row in chosen], marker, color=color, label=method)
    _finish(axes, "bits per weight, scales included", "KL divergence (nats per token)", legend=True)


def _axes() -> Axes:
    return plt.subplots(figsize=(7, 3.4), dpi=100, layout="constrained")[1]


def _label(axes: Axes, x: str, y: str) -> None:
    axes.set_xlabel(x)
    axes.set_ylabel(y)
    axes.grid(alpha=0.3)


def _finish(axes: Axes, x: str, y: str, legend: bool = False) -> None:
    _label(axes, x, y)
    if legend:
        axes.legend(frameon=False)
    plt.show()
