"""The weights as a NumPy array"""


def parse_quantization_input(text):
    first, _, rest = text.partition("\n")
    if not first.replace(",", "").strip():
        raise ValueError("no weights")
    weights = np.array(first.replace(",", " ").split(), dtype=float)
    if not np.all(np.isfinite(weights)):
        raise ValueError("not finite")
    size, _, rest = rest.partition("\n")
    if rest.strip():
        raise ValueError("a third line")
    size = int(size)
    if size <= 0:
        raise ValueError("the group size must be positive")
    return weights, size
