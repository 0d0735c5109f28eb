"""Split with a regular expression"""

import math
import re


def parse_quantization_input(text):
    lines = [line.strip() for line in text.replace("\r", "").split("\n")]
    while lines and not lines[-1]:
        lines.pop()
    if len(lines) != 2:
        raise ValueError(f"expected two lines, found {len(lines)}")
    weights = [float(token) for token in re.split(r"[\s,]+", lines[0]) if token]
    if not weights or not all(map(math.isfinite, weights)):
        raise ValueError("line 1 needs finite weights")
    if not re.fullmatch(r"\+?\d+", lines[1]) or int(lines[1]) == 0:
        raise ValueError("line 2 needs a positive integer")
    return weights, int(lines[1])
