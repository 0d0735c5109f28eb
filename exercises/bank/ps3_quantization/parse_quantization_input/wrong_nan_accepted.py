"""nan and inf taken for weights

Hint: `float("nan")` raises nothing, and neither does `float("inf")`. Who checks for them?
Caught by: parse-refuses-bad-weights
"""


def parse_quantization_input(text):
    lines = text.rstrip().splitlines()
    if len(lines) != 2:
        raise ValueError("there must be two lines")
    weights, size = [float(token) for token in lines[0].replace(",", " ").split()], int(lines[1])
    if not weights or size < 1:
        raise ValueError("bad number")
    return weights, size
