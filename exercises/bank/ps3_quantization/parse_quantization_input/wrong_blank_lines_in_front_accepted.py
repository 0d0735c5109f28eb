"""The text is stripped on both sides first

Hint: What becomes of a blank line in front of the weights when the whole text is stripped?
Caught by: parse-refuses-bad-weights
"""

import math


def parse_quantization_input(text):
    lines = text.strip().splitlines()
    if len(lines) != 2:
        raise ValueError("two lines are expected")
    weights = [float(token) for token in lines[0].replace(",", " ").split()]
    if not weights or not all(map(math.isfinite, weights)):
        raise ValueError("line 1 needs finite weights")
    size = int(lines[1])
    if size < 1:
        raise ValueError("the group size must be positive")
    return weights, size
