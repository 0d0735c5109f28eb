"""Only commas taken as separators

Hint: Weights may stand apart by spaces alone. Where do you split the first line?
Caught by: parse-accepts
"""


def parse_quantization_input(text):
    lines = text.rstrip().splitlines()
    if len(lines) != 2:
        raise ValueError("there must be two lines")
    weights, size = [float(token) for token in lines[0].split(",")], int(lines[1])
    if size < 1 or not all(np.isfinite(w) for w in weights):
        raise ValueError("bad number")
    return weights, size
