"""Blank lines are dropped wherever they stand

Hint: Blank lines may follow the group size. May they stand in front of it?
Caught by: parse-refuses-bad-weights, parse-refuses-bad-group-size
"""

import math


def parse_quantization_input(text):
    lines = [line for line in text.splitlines() if line.strip()]
    if len(lines) != 2:
        raise ValueError("two lines are expected")
    weights = [float(token) for token in lines[0].replace(",", " ").split()]
    if not weights or not all(map(math.isfinite, weights)):
        raise ValueError("line 1 needs finite weights")
    size = int(lines[1])
    if size < 1:
        raise ValueError("the group size must be positive")
    return weights, size
