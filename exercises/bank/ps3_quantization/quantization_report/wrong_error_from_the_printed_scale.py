"""The error computed with the scale as it is printed

Hint: Your mean error is a little off. Which scale do you multiply by: the exact one, or the one with 5
decimals?
Caught by: report-one-group
"""


def quantization_report(text):
    weights, size = parse_quantization_input(text)
    lines, errors = [], []
    for number, start in enumerate(range(0, len(weights), size), 1):
        part = weights[start : start + size]
        scale, q = quantize_group(part)
        scale = round(scale, 5)
        lines.append(f"group {number}: scale {scale:.5f} q {' '.join(map(str, q))}")
        errors += [abs(w - n * scale) for w, n in zip(part, q)]
    return "\n".join([*lines, f"mean error: {sum(errors) / len(errors):.5f}"])
