"""Infinity is looked for by its name in the text

Hint: `float("1e999")` is infinite without being called so. Ask the number, not its text.
Caught by: parse-refuses-bad-weights
"""


def parse_quantization_input(text):
    lines = text.rstrip().splitlines()
    if len(lines) != 2:
        raise ValueError("two lines are expected")
    weights = [float(token) for token in lines[0].replace(",", " ").split()]
    if not weights or any(name in lines[0].lower() for name in ("nan", "inf")):
        raise ValueError("line 1 needs finite weights")
    size = int(lines[1])
    if size < 1:
        raise ValueError("the group size must be positive")
    return weights, size
