"""Groups counted from 0

Hint: The first line of the example says group 1.
Caught by: report-one-group, report-last-group-may-be-shorter
"""


def quantization_report(text):
    weights, size = parse_quantization_input(text)
    lines, errors = [], []
    for number, start in enumerate(range(0, len(weights), size)):
        part = weights[start : start + size]
        scale, q = quantize_group(part)
        lines.append(f"group {number}: scale {scale:.5f} q {' '.join(map(str, q))}")
        errors += [abs(w - n * scale) for w, n in zip(part, q)]
    return "\n".join([*lines, f"mean error: {sum(errors) / len(errors):.5f}"])
