"""No weights taken for an empty list

Hint: What does your function return when the first line holds nothing, or only a comma?
Caught by: parse-refuses-bad-weights
"""


def parse_quantization_input(text):
    lines = text.rstrip().splitlines()
    if len(lines) > 2 or len(lines) == 1:
        raise ValueError("there must be two lines")
    if not lines:
        return [], 1
    weights, size = [float(token) for token in lines[0].replace(",", " ").split()], int(lines[1])
    if size < 1 or not all(np.isfinite(w) for w in weights):
        raise ValueError("bad number")
    return weights, size
