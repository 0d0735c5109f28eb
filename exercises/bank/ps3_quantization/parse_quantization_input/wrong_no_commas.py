"""Only spaces taken as separators

Hint: `1, 2 ,3  4` are four weights. What does your function do with the commas?
Caught by: parse-accepts
"""


def parse_quantization_input(text):
    lines = text.rstrip().splitlines()
    if len(lines) != 2 or not lines[0].strip():
        raise ValueError("there must be two lines")
    weights, size = [float(token) for token in lines[0].split()], int(lines[1])
    if size < 1 or not all(np.isfinite(w) for w in weights):
        raise ValueError("bad number")
    return weights, size
