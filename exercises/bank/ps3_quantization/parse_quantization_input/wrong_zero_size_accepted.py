"""A group size of 0 or below accepted

Hint: Can a group have no weights, or a negative number of them?
Caught by: parse-refuses-bad-group-size
"""


def parse_quantization_input(text):
    lines = text.rstrip().splitlines()
    if len(lines) != 2:
        raise ValueError("there must be two lines")
    weights, size = [float(token) for token in lines[0].replace(",", " ").split()], int(lines[1])
    if not weights or not all(np.isfinite(w) for w in weights):
        raise ValueError("bad number")
    return weights, size
