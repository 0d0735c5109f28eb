"""A missing line answered with an IndexError

Hint: A list that is too short raises IndexError by itself. Which error is asked for?
Caught by: parse-refuses-bad-group-size
"""


def parse_quantization_input(text):
    lines = text.rstrip().splitlines()
    weights, size = [float(token) for token in lines[0].replace(",", " ").split()], int(lines[1])
    if not weights or size < 1 or not all(np.isfinite(w) for w in weights) or len(lines) > 2:
        raise ValueError("bad input")
    return weights, size
