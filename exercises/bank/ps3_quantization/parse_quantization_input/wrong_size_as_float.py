"""The group size returned as a float

Hint: A group of 2.0 weights? Look at the type of the second result.
Caught by: parse-accepts
"""


def parse_quantization_input(text):
    lines = text.rstrip().splitlines()
    if len(lines) != 2:
        raise ValueError("there must be two lines")
    weights, size = [float(token) for token in lines[0].replace(",", " ").split()], int(lines[1])
    if not weights or size < 1 or not all(np.isfinite(w) for w in weights):
        raise ValueError("bad number")
    return weights, float(size)
