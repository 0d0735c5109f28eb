"""The mean squared error

Hint: The text asks for the mean of |w − q · scale|. What do you average?
Caught by: report-one-group, report-mean-over-all-weights
"""


def quantization_report(text):
    weights, size = parse_quantization_input(text)
    lines, errors = [], []
    for number, start in enumerate(range(0, len(weights), size), 1):
        part = weights[start : start + size]
        scale, q = quantize_group(part)
        lines.append(f"group {number}: scale {scale:.5f} q {' '.join(map(str, q))}")
        errors += [(w - n * scale) ** 2 for w, n in zip(part, q)]
    return "\n".join([*lines, f"mean error: {sum(errors) / len(errors):.5f}"])
