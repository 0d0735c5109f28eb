"""What is no number skipped without a word

Hint: If one of three weights is misspelt, two remain, and nobody is told. What shall happen instead?
Caught by: parse-refuses-bad-weights
"""


def parse_quantization_input(text):
    lines = text.rstrip().splitlines()
    if len(lines) != 2:
        raise ValueError("there must be two lines")
    weights = []
    for token in lines[0].replace(",", " ").split():
        try:
            if np.isfinite(float(token)):
                weights.append(float(token))
        except ValueError:
            continue
    if not weights or int(lines[1]) < 1:
        raise ValueError("bad number")
    return weights, int(lines[1])
