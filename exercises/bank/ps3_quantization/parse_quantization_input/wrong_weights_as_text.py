"""The weights left as text

Hint: Look at the type of what stands in your list.
Caught by: parse-accepts
"""


def parse_quantization_input(text):
    lines = text.rstrip().splitlines()
    if len(lines) != 2:
        raise ValueError("there must be two lines")
    weights, size = lines[0].replace(",", " ").split(), int(lines[1])
    if not weights or size < 1 or not all(np.isfinite(float(w)) for w in weights):
        raise ValueError("bad number")
    return weights, size
