"""Further lines ignored

Hint: Somebody who writes a third line expects it to count. What does yours do with it?
Caught by: parse-refuses-bad-group-size
"""


def parse_quantization_input(text):
    lines = text.rstrip().splitlines()
    if len(lines) < 2:
        raise ValueError("there must be two lines")
    weights, size = [float(token) for token in lines[0].replace(",", " ").split()], int(lines[1])
    if not weights or size < 1 or not all(np.isfinite(w) for w in weights):
        raise ValueError("bad number")
    return weights, size
