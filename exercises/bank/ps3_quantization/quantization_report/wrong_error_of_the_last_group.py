"""Only the last group's errors averaged

Hint: Where do you empty your list of errors?
Caught by: report-mean-over-all-weights
"""


def quantization_report(text):
    weights, size = parse_quantization_input(text)
    lines = []
    for number, start in enumerate(range(0, len(weights), size), 1):
        errors = []
        part = weights[start : start + size]
        scale, q = quantize_group(part)
        lines.append(f"group {number}: scale {scale:.5f} q {' '.join(map(str, q))}")
        errors += [abs(w - n * scale) for w, n in zip(part, q)]
    return "\n".join([*lines, f"mean error: {sum(errors) / len(errors):.5f}"])
