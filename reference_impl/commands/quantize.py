"""The command `quantize`, and the program exercise "group-wise int8 quantization" behind it.

    python -m reference_impl quantize < INPUT

It reads weights and a group size, and writes scales and integers: scale = max|w| / 127 for each group, in double
precision, and q = w / scale rounded half to even. Numbers are those of Python's `float()` for the weights and `int()`
for the group size, so `1e-3`, `+5` and `1_000` are numbers. Standard library only.
"""

import math
from collections.abc import Iterable

from reference_impl.common import cli

Q_MAX = 127


def parse_quantization_input(text: str) -> tuple[list[float], int]:
    """(weights, group size) from line 1 (separated by white space, commas or both) and line 2.

    CRLF and blank lines at the end are accepted. ValueError names the line: no weights, a token that is not a finite
    number, a group size that is missing or no positive integer, a further line that is not blank.
    """
    lines = [line.strip() for line in text.split("\n")] + [""]
    tokens = lines[0].replace(",", " ").split()
    if not tokens:
        raise ValueError("line 1: no weights")
    weights = [_parse_weight(token, place) for place, token in enumerate(tokens, start=1)]
    group_size = _parse_group_size(lines[1])
    for number, line in enumerate(lines[2:], start=3):
        if line:
            raise ValueError(f"line {number}: nothing may follow the group size, got {cli.shown(line)}")
    return weights, group_size


def quantize_group(weights: Iterable[float]) -> tuple[float, list[int]]:
    """One group -> (scale, q), |q| <= 127; a group of zeros has scale 0 and q = 0.

    Raises ValueError for an empty group and for a weight that is not finite, naming its place.
    """
    values = [float(weight) for weight in weights]
    if not values:
        raise ValueError("no weights")
    for place, value in enumerate(values, start=1):
        if not math.isfinite(value):
            raise ValueError(f"weight {place} is {value}, expected a finite number")
    largest = max(map(abs, values))
    if largest == 0:
        return 0.0, [0] * len(values)
    scale = largest / Q_MAX
    if largest > (Q_MAX + 0.5) * scale:  # weights around 1e-322, where the division rounds by whole units
        scale = math.nextafter(scale, math.inf)
    return scale, [round(value / scale) for value in values]


def quantization_report(text: str) -> str:
    """The program's output: one line a group, then the mean of |w - q * scale|; no newline at the end.

    Raises ValueError as `parse_quantization_input`.
    """
    weights, group_size = parse_quantization_input(text)
    lines: list[str] = []
    errors: list[float] = []
    for start in range(0, len(weights), group_size):
        group = weights[start : start + group_size]
        scale, q = quantize_group(group)
        lines.append(f"group {len(lines) + 1}: scale {scale:.5f} q {' '.join(map(str, q))}")
        errors += [abs(weight - value * scale) for weight, value in zip(group, q, strict=True)]
    return "\n".join([*lines, f"mean error: {_mean(errors):.5f}"])


def main(arguments: list[str]) -> None:
    """`python -m reference_impl quantize < INPUT`"""
    cli.parser("quantize", "Line 1 of standard input: weights; line 2: the group size.").parse_args(arguments)
    print(quantization_report(cli.read_input()))


def _parse_weight(token: str, place: int) -> float:
    try:
        weight = float(token)
    except ValueError:
        weight = math.nan
    if not math.isfinite(weight):
        raise ValueError(f"line 1, weight {place}: {cli.shown(token)} is not a finite number")
    return weight


def _parse_group_size(line: str) -> int:
    if not line:
        raise ValueError("line 2: the group size is missing")
    try:
        size = int(line)
    except ValueError:
        size = 0
    if size < 1:
        raise ValueError(f"line 2: the group size must be a positive integer, got {cli.shown(line)}")
    return size


def _mean(values: list[float]) -> float:
    try:
        return math.fsum(values) / len(values)
    except OverflowError:  # weights around 1e308: their sum is no double, their mean is
        return math.fsum(value / len(values) for value in values)
