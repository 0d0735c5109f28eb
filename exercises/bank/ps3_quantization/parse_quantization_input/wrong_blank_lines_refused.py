"""Blank lines at the end refused

Hint: Editors leave blank lines at the end of a file. Which of your lines says that there must be exactly two?
Caught by: parse-accepts
"""


def parse_quantization_input(text):
    lines = text.removesuffix("\n").split("\n")
    if len(lines) != 2:
        raise ValueError("there must be exactly two lines")
    tokens, size = lines[0].replace(",", " ").split(), int(lines[1])
    weights = [float(token) for token in tokens]
    if not weights or size < 1 or not all(np.isfinite(w) for w in weights):
        raise ValueError("bad number")
    return weights, size
