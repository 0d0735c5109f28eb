"""Diagrams of numbers in few bits: what formats hold, how a group lies in memory, what GPTQ and AWQ do to it."""

import torch

from interactives.diagrams.drawing import Anchor, Colour, Diagram, Drawing
from reference_impl.bounds.arithmetic import bits_per_weight
from reference_impl.quantization.floating import float_values
from reference_impl.quantization.gptq import gptq, output_error
from reference_impl.quantization.rounding import quantize


def _integers(bits: int) -> list[float]:
    most = 2 ** (bits - 1) - 1
    return [float(n) for n in range(-most, most + 1)]


def number_lines() -> Diagram:
    """The values of four formats between 0 and the largest weight of a group, each stretched to the same length."""
    formats = [
        ("INT4", _integers(4), "equal steps"),
        ("FP4 (E2M1)", float_values(2, 1), "close near 0"),
        ("INT8", _integers(8), "equal steps"),
        ("FP8 (E4M3)", float_values(4, 3, nan=True), "close near 0"),
    ]
    drawing = Drawing("number-lines", height=292)
    left, right = 12.0, 348.0
    told = []
    for row, (name, values, how) in enumerate(formats):
        y = 44 + 62 * row
        above = [value for value in values if value >= 0]
        most = above[-1]
        drawing.text(left, y - 24, name, bold=True)
        drawing.text(right, y - 24, f"{len(values)} values, {how}", "end")
        drawing.line(left, y, right, y)
        for value in above:
            x = left + (right - left) * value / most
            drawing.line(x, y - 14, x, y, "memory", width=2.2 if len(above) < 20 else 0.7)
        told.append(f"{name} has {len(values)} values, {how}")
    drawing.text(left, 252, "0")
    drawing.text(right, 252, "largest weight of the group", "end")
    drawing.text(left, 280, "Negative values mirror these.", colour="soft")
    return drawing.finish(
        "Number lines of four formats",
        "Ticks between 0 and the largest weight of a group. " + "; ".join(told) + ". Each format is stretched so that "
        "its largest value meets the largest weight.",
        see="Each tick is a value that the format can hold. Integers have the same step everywhere. Floating-point "
        "formats crowd near 0 and leave wide gaps at the end.",
        source="All values of each format, from its bits of exponent and mantissa.",
    )


def group_bits() -> Diagram:
    """The bits of 32 weights of 4 bits and their scale, each bit as a cell."""
    bits, group = 4, 32
    drawing = Drawing("group-bits", height=168)
    left, cell = 12.0, 10.0
    drawing.text(left, 20, f"one scale: {16} bits", bold=True)
    for i in range(16):
        drawing.bar(left + cell * i, 28, cell - 1.5, 14, "arithmetic")
    drawing.text(left, 66, f"{group} weights of {bits} bits: {bits * group} bits", bold=True)
    columns = 32
    for i in range(bits * group):
        nibble = i % columns // bits
        x = left + cell * (i % columns) + 0.8 * nibble
        drawing.bar(x, 74 + 16 * (i // columns), cell - 1.5, 13, "memory")
    per_weight = bits_per_weight(bits, group)
    drawing.text(left, 158, f"{bits * group + 16} bits / {group} weights = {per_weight:g} bits a weight", bold=True)
    return drawing.finish(
        "The bits of a group",
        f"A row of 16 cells is the scale of the group. Below it are {group} weights of {bits} bits each, "
        f"{bits * group} cells. Together {bits * group + 16} bits for {group} weights: {per_weight:g} bits a weight.",
        see="Every small cell is a bit. The scale takes as much room as four weights.",
        source=f"Computed by bits_per_weight({bits}, {group}).",
    )


_ROW = torch.tensor([[0.75, -0.4, 0.32, 0.78, 0.45, 0.9]])
_INPUTS = 0.8  # correlation of each input with the next
_HESSIAN = torch.tensor([[_INPUTS ** abs(i - j) for j in range(6)] for i in range(6)])


def _compared() -> tuple[list[float], list[float], float, float]:
    """Six weights rounded to 3 bits and by GPTQ, and the error of the outputs of each."""
    rounded = quantize(_ROW, bits=3, group_size=None).dequantize()
    repaired = gptq(_ROW, _HESSIAN, bits=3, group_size=None).dequantize()
    errors = [output_error(_ROW, one, _HESSIAN) for one in (rounded, repaired)]
    return rounded[0].tolist(), repaired[0].tolist(), errors[0], errors[1]


def gptq_columns() -> Diagram:
    """GPTQ half-way through a matrix, and what it makes of one row of six weights."""
    rounded, repaired, plain, better = _compared()
    drawing = Drawing("gptq-columns", height=300)
    left, wide = 12.0, 52.0
    states: list[tuple[str, Colour]] = [("done", "memory"), ("done", "memory"), ("now", "arithmetic")]
    states += [("later", "soft")] * 3
    for i, (words, colour) in enumerate(states):
        drawing.label(left + (wide + 4) * i, 36, wide, 46, words, colour, bold=words == "now")
    x = left + (wide + 4) * 2 + wide / 2
    drawing.path(f"M{x} 36C{x} 18 {x + 56} 18 {x + 56} 33", arrow=True)
    drawing.path(f"M{x} 36C{x} 8 {x + 112} 8 {x + 112} 33", arrow=True)
    drawing.path(f"M{x} 36C{x} -2 {x + 168} -2 {x + 168} 33", arrow=True)
    drawing.lines(left, 104, ["Round a column. Move the later columns so", "that they make up for its error."])
    places = [left + 76 + 46 * i for i in range(6)]
    for row, (name, values) in enumerate([("weights", _ROW[0].tolist()), ("rounded", rounded), ("GPTQ", repaired)]):
        y = 158 + 26 * row
        drawing.text(left, y, name, bold=True)
        for place, value, usual in zip(places, values, rounded, strict=True):
            moved = name == "GPTQ" and abs(value - usual) > 1e-6
            drawing.text(place + 36, y, f"{value:.2f}".replace("-", "−"), "end", bold=moved)
    drawing.line(left, 224, 348, 224)
    drawing.text(left, 248, "output error", bold=True)
    drawing.text(left, 270, f"rounded: {plain:.0%}")
    drawing.text(left, 290, f"GPTQ: {better:.0%}", bold=True)
    drawing.bar(120, 259, 220 * plain / max(plain, better), 13, "waste")
    drawing.bar(120, 279, 220 * better / max(plain, better), 13, "arithmetic")
    return drawing.finish(
        "The order in which GPTQ works",
        "Six columns of a matrix: two are done, the third is rounded now, and arrows lead from it to the three later "
        "columns, which are moved to make up for its error. Below, six weights, their values after rounding to 3 bits "
        f"and after GPTQ. The output error falls from {plain:.0%} to {better:.0%}.",
        see="The bold values are not the nearest ones. GPTQ chose them because the inputs of neighbouring columns go "
        "together, so that their errors cancel.",
        source="Rounding and GPTQ of the course on six weights, whose inputs correlate by 0.8 with the next.",
    )


_COLUMN = torch.tensor([[0.45, -0.93, 1.0, 0.31]])
_MEETS = [8.0, 1.0, 1.0, 1.0]  # the size of the input of each weight
_FACTOR = 2.0


def _scaled() -> tuple[list[float], list[float]]:
    """Four weights rounded to 3 bits, and rounded with the first of them scaled up."""
    factors = torch.tensor([[_FACTOR, 1.0, 1.0, 1.0]])
    before = quantize(_COLUMN, bits=3, group_size=None).dequantize()
    after = quantize(_COLUMN * factors, bits=3, group_size=None).dequantize() / factors
    return before[0].tolist(), after[0].tolist()


def awq_scaling() -> Diagram:
    """A weight that meets a large input, rounded as it is and rounded after scaling."""
    before, after = _scaled()
    weight = float(_COLUMN[0, 0])
    drawing = Drawing("awq-scaling", height=298)
    left, right = 16.0, 344.0
    step = 1 / 3  # 3 bits: levels -3 to 3 of the largest weight, 1.0
    for row, (title, place, lands) in enumerate(
        [
            ("Before: rounded as it is", weight, before[0]),
            ("After: scaled by 2, rounded, divided by 2", _FACTOR * weight, _FACTOR * after[0]),
        ]
    ):
        y = 76 + 148 * row
        drawing.text(left, y - 56, title, bold=True)
        drawing.line(left, y, right, y)
        for level in range(4):
            x = left + (right - left) * level * step
            drawing.line(x, y - 10, x, y + 4, "memory", width=2.2)
            anchor: Anchor = "start" if level == 0 else "end" if level == 3 else "middle"
            drawing.text(x, y + 21, f"{level * step:.2f}", anchor)
        x, to = (left + (right - left) * value for value in (place, lands))
        drawing.line(x, y - 16, to, y - 16, "arithmetic", width=4)
        drawing.dot(x, y - 16, 5.5, "arithmetic")
        drawing.text(x, y - 28, f"{place:.2f}", "middle", bold=True)
        back = lands / (_FACTOR if row else 1)
        error = abs(back - weight)
        drawing.text(left, y + 44, f"comes back as {back:.2f}, off by {error:.3f}")
        drawing.text(left, y + 62, f"times its input of {_MEETS[0]:.0f}: {_MEETS[0] * error:.2f}", bold=True)
    return drawing.finish(
        "A weight that meets a large input, without and with AWQ's scaling",
        f"Number lines with the levels 0, 0.33, 0.67 and 1. Before: the weight {weight} is rounded to {before[0]:.2f}. "
        f"After: it is scaled to {_FACTOR * weight:.2f}, rounded to {_FACTOR * after[0]:.2f} and divided by 2, which "
        f"gives {after[0]:.2f}. The error of the output falls from {_MEETS[0] * abs(before[0] - weight):.2f} to "
        f"{_MEETS[0] * abs(after[0] - weight):.2f}.",
        see="The largest weight of the group sets the levels, so they stay where they are. The scaled weight meets the "
        "same levels, and its error is divided by 2 afterwards.",
        source="The course's rounding to 3 bits of the group 0.45, −0.93, 1.00, 0.31.",
    )
