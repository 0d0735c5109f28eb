"""Groups from a generator"""


def quantization_report(text):
    def groups():
        weights, size = parse_quantization_input(text)
        for number in range(1, -(-len(weights) // size) + 1):
            part = weights[(number - 1) * size : number * size]
            yield number, part, *quantize_group(part)

    found = list(groups())
    errors = [abs(w - n * scale) for _, part, scale, q in found for w, n in zip(part, q)]
    lines = [f"group {number}: scale {scale:.5f} q {' '.join(f'{n:d}' for n in q)}" for number, _, scale, q in found]
    return "\n".join(lines) + f"\nmean error: {sum(errors) / len(errors):.5f}"
