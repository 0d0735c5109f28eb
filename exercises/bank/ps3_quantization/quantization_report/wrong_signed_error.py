"""Errors added with their signs

Hint: An error of +0.1 and one of -0.1 cancel in your version.
Caught by: report-one-group, report-mean-over-all-weights
"""


def quantization_report(text):
    weights, size = parse_quantization_input(text)
    lines, errors = [], []
    for number, start in enumerate(range(0, len(weights), size), 1):
        part = weights[start : start + size]
        scale, q = quantize_group(part)
        lines.append(f"group {number}: scale {scale:.5f} q {' '.join(map(str, q))}")
        errors += [w - n * scale for w, n in zip(part, q)]
    return "\n".join([*lines, f"mean error: {sum(errors) / len(errors):.5f}"])
