"""Group size against error, measured on a real weight matrix.

A smaller group costs more scales and buys a finer grid. Every number comes from `reference_impl`: this file measures
each group size once and draws the curve, and `GroupExplorer` shows the points with a slider.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import Any

import numpy as np
from matplotlib.ticker import MultipleLocator

from reference_impl.benchmarks.quality.expected_error import expected_error, relative_error
from reference_impl.quantization.groupwise import dequantize_groupwise, quantize_groupwise

SCALE_BITS = 16  # a scale is stored as a 16-bit float
STRIP = 512  # weights of the first row whose groups are looked at one by one
BLUE, ORANGE, GREEN = "#0072B2", "#D55E00", "#009E73"  # Okabe and Ito: told apart by every eye


@dataclass(frozen=True)
class GroupPoint:
    """Cost and loss of one group size. Errors are fractions: RMS of the error over RMS of the weights."""

    group_size: int  # weights that share a scale
    bits: int  # of one quantized weight
    bits_per_weight: float  # with the scales counted
    error: float  # measured
    expected: float  # predicted for normal weights
    level_shares: tuple[float, ...]  # share of the weights on each level, from the lowest level to the highest
    strip_errors: tuple[float, ...] = ()  # of each group that begins among the first STRIP weights of the first row

    @property
    def rounded_to_zero(self) -> float:
        """Share of the weights that come back as exactly 0."""
        return self.level_shares[len(self.level_shares) // 2]

    @property
    def levels_used(self) -> int:
        """The smallest number of levels that hold 90 % of the weights."""
        fullest_first = accumulate(sorted(self.level_shares, reverse=True))
        return next(n for n, held in enumerate(fullest_first, start=1) if held >= 0.9 - 1e-12)


def measure(weight: np.ndarray, group_size: int, bits: int = 4) -> GroupPoint:
    """Quantize weight [rows, columns] in groups of `group_size` columns and report cost and loss.

    Scales are counted as they are, so a last, shorter group of a row costs a whole scale.
    Raises ValueError as `quantize_groupwise` does.
    """
    q, scales = quantize_groupwise(weight, group_size, bits)
    restored = dequantize_groupwise(q, scales, group_size)
    groups = [slice(first, first + group_size) for first in range(0, min(STRIP, weight.shape[1]), group_size)]
    largest = 2 ** (bits - 1) - 1
    counts = np.bincount(q.ravel().astype(np.int64) + largest, minlength=2 * largest + 1)
    return GroupPoint(
        group_size=group_size,
        bits=bits,
        bits_per_weight=bits + SCALE_BITS * scales.size / q.size,
        error=relative_error(weight, restored),
        expected=expected_error(group_size, bits),
        level_shares=tuple((counts / q.size).tolist()),
        strip_errors=tuple(_error(weight[0, group], restored[0, group]) for group in groups),
    )


def _error(weight: np.ndarray, restored: np.ndarray) -> float:
    """The relative error of one group, which may hold nothing but zeros: those lose nothing."""
    return relative_error(weight, restored) if weight.any() else 0.0


def sweep(weight: np.ndarray, group_sizes: Sequence[int], bits: int = 4) -> list[GroupPoint]:
    """One point per group size, in the order given."""
    return [measure(weight, group_size, bits) for group_size in group_sizes]


def draw_errors(axes: Any, points: Sequence[GroupPoint], guess: tuple[int, float] | None = None) -> None:
    """Measured and predicted error against group size; `guess` is a group size and a guessed error in percent."""
    sizes = [point.group_size for point in points]
    axes.plot(sizes, [100 * point.error for point in points], "o-", color=BLUE, label="measured")
    axes.plot(sizes, [100 * point.expected for point in points], "s--", color=ORANGE, label="predicted, normal weights")
    if guess is not None:
        axes.plot(*([value] for value in guess), "*", color=GREEN, markersize=14, label="your guess")
    axes.set_xscale("log", base=2)
    axes.set_xticks(sizes, [str(size) for size in sizes])
    axes.minorticks_off()
    axes.set_ylim(0, 110 * max(max(point.error, point.expected) for point in points))
    axes.yaxis.set_major_locator(MultipleLocator(5))
    axes.set_xlabel("group size (weights per scale)")
    axes.set_ylabel("relative error (%)")
    axes.grid(alpha=0.3)
    axes.legend(frameon=False)


def table_html(points: Sequence[GroupPoint]) -> str:
    """All points as a small table."""
    heads = ("group size", "bits per weight", "error", "predicted", "become 0", "levels for 90%")
    rows = []
    for point in points:
        cells = (
            str(point.group_size),
            f"{point.bits_per_weight:.3f}",
            f"{point.error:.1%}",
            f"{point.expected:.1%}",
            f"{point.rounded_to_zero:.0%}",
            f"{point.levels_used} of {len(point.level_shares)}",
        )
        rows.append(f"<tr>{''.join(f'<td>{cell}</td>' for cell in cells)}</tr>")
    head = "".join(f'<th scope="col">{name}</th>' for name in heads)
    return f"<table><thead><tr>{head}</tr></thead><tbody>{''.join(rows)}</tbody></table>"
