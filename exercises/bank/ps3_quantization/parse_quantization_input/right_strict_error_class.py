"""Its own subclass of ValueError, a tuple of weights"""


class BadInput(ValueError):
    pass


def parse_quantization_input(text):
    lines = text.splitlines()
    if any(line.strip() for line in lines[2:]):
        raise BadInput("too many lines")
    if len(lines) < 2:
        raise BadInput("a line is missing")
    try:
        weights = tuple(float(token) for token in lines[0].replace(",", " ").split())
        size = int(lines[1])
    except ValueError as error:
        raise BadInput(str(error)) from None
    if not weights or size < 1 or any(w - w != 0 for w in weights):
        raise BadInput("bad number")
    return weights, size
