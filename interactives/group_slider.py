"""Group size against error: one slider over a real weight matrix, and the same picture without a kernel.

The one idea: a smaller group costs more scales and buys a finer grid. Every number comes from `reference_impl`; this
file measures once per group size, draws, and shows. A page without a kernel gets the same cell's figure and table.
"""

import base64
import html
import io
import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import Any

import ipywidgets as widgets
import numpy as np
from matplotlib.figure import Figure
from matplotlib.ticker import MultipleLocator

from reference_impl.quantization.error import expected_error, relative_error
from reference_impl.quantization.groupwise import dequantize_groupwise, quantize_groupwise

SCALE_BITS = 16  # a scale is stored as a 16-bit float
BLUE, ORANGE, GREEN, GREY = "#0072B2", "#D55E00", "#009E73", "#BBBBBB"  # Okabe and Ito: told apart by every eye
WIDGET_MIME = "application/vnd.jupyter.widget-view+json"


@dataclass(frozen=True)
class GroupPoint:
    """What one group size costs and what it loses. Errors are fractions: RMS of the error over RMS of the weights."""

    group_size: int  # weights that share a scale
    bits: int  # of one quantized weight
    bits_per_weight: float  # with the scales counted
    error: float  # measured
    expected: float  # predicted for normal weights
    level_shares: tuple[float, ...]  # share of the weights on each level, from the lowest level to the highest

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
    largest = 2 ** (bits - 1) - 1
    counts = np.bincount(q.ravel().astype(np.int64) + largest, minlength=2 * largest + 1)
    return GroupPoint(
        group_size=group_size,
        bits=bits,
        bits_per_weight=bits + SCALE_BITS * scales.size / q.size,
        error=relative_error(weight, dequantize_groupwise(q, scales, group_size)),
        expected=expected_error(group_size, bits),
        level_shares=tuple((counts / q.size).tolist()),
    )


def sweep(weight: np.ndarray, group_sizes: Sequence[int], bits: int = 4) -> list[GroupPoint]:
    """One point per group size, in the order given."""
    return [measure(weight, group_size, bits) for group_size in group_sizes]


def sentence(point: GroupPoint) -> str:
    """What the picture says, for a reader who does not see it."""
    return (
        f"Groups of {point.group_size}: {point.bits_per_weight:.2f} bits per weight, error {point.error:.1%} "
        f"(normal weights: {point.expected:.1%}). {point.rounded_to_zero:.0%} of the weights become 0, "
        f"and 90% of them use {point.levels_used} of the {len(point.level_shares)} levels."
    )


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


def draw(points: Sequence[GroupPoint], chosen: GroupPoint) -> Figure:
    """Left the error against group size with the chosen one ringed, right where its weights fall on the grid."""
    figure = Figure(figsize=(7, 3), layout="constrained")
    left, right = figure.subplots(1, 2)
    draw_errors(left, points)
    left.plot([chosen.group_size], [100 * chosen.error], "o", markersize=14, fillstyle="none", color="black")
    largest = len(chosen.level_shares) // 2
    levels = np.arange(-largest, largest + 1)
    right.bar(levels, [100 * share for share in chosen.level_shares], color=[BLUE if n else GREY for n in levels])
    # The same scale at every slider position, so that the bars can be compared.
    top = max(share for point in points for share in point.level_shares)
    right.set_ylim(0, 5 * math.ceil(21 * top))
    right.set_xlim(-largest - 0.6, largest + 0.6)
    right.xaxis.set_major_locator(MultipleLocator(max(1, largest // 3)))
    right.set_xlabel(f"level ({chosen.bits}-bit integer)")
    right.set_ylabel("weights on it (%)")
    right.set_title(f"groups of {chosen.group_size}", fontsize=10)
    return figure


def table_html(points: Sequence[GroupPoint], chosen: GroupPoint) -> str:
    """All points as a small table, the chosen row in bold."""
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
        weight = "bold" if point is chosen else "normal"
        data = "".join(f'<td style="text-align:right;padding:2px 10px">{cell}</td>' for cell in cells)
        rows.append(f'<tr style="font-weight:{weight}">{data}</tr>')
    head = "".join(f'<th scope="col" style="text-align:right;padding:2px 10px">{name}</th>' for name in heads)
    return f'<table style="line-height:1.4"><thead><tr>{head}</tr></thead><tbody>{"".join(rows)}</tbody></table>'


class GroupExplorer:
    """The last value of a cell: a slider where there is a kernel, the figure and the table where there is none.

    points: what `sweep` returned. start: the group size shown first.
    """

    def __init__(self, points: Sequence[GroupPoint], start: int = 32) -> None:
        self.points = {point.group_size: point for point in points}
        if start not in self.points:
            raise ValueError(f"group size {start} was not measured; measured: {sorted(self.points)}")
        self.start = start
        self._pages: dict[int, str] = {}

    def page(self, group_size: int) -> str:
        """Figure, sentence and table of one group size as HTML; drawn once, then remembered."""
        if group_size not in self._pages:
            chosen, points = self.points[group_size], list(self.points.values())
            png = io.BytesIO()
            draw(points, chosen).savefig(png, format="png", dpi=200)
            data = base64.b64encode(png.getvalue()).decode()
            words = html.escape(sentence(chosen))
            self._pages[group_size] = (
                f'<img alt="{words}" src="data:image/png;base64,{data}" width="700" '
                f'style="max-width:100%;height:auto;display:block">'
                f'<p role="status" aria-live="polite" style="margin:0.5em 0;line-height:1.4">{words}</p>'
                f"{table_html(points, chosen)}"
            )
        return self._pages[group_size]

    def widget(self) -> Any:
        """An ipywidgets slider above the page of the chosen group size."""
        slider = widgets.SelectionSlider(
            options=list(self.points), value=self.start, description="group size", layout=widgets.Layout(width="420px")
        )
        view = widgets.HTML(self.page(self.start))
        slider.observe(lambda change: setattr(view, "value", self.page(change["new"])), names="value")
        return widgets.VBox([slider, view])

    def _repr_mimebundle_(self, **_: Any) -> dict[str, Any]:
        for group_size in self.points:
            self.page(group_size)  # drawn now, so that the slider answers at once
        shown = f"shown here for <strong>groups of {self.start}</strong>"
        note = f'<p class="still-note">A slider in JupyterLab; {shown}.</p>'
        return {
            WIDGET_MIME: self.widget()._repr_mimebundle_()[WIDGET_MIME],
            "text/html": note + self.page(self.start),  # what a page without a kernel shows instead
            "text/plain": sentence(self.points[self.start]),
        }
