"""The last group filled up with zeros that are printed and counted

Hint: The last group shows more integers than there are weights.
Caught by: report-last-group-may-be-shorter
"""


def quantization_report(text):
    weights, size = parse_quantization_input(text)
    weights = weights + [0.0] * (-len(weights) % size)
    lines, errors = [], []
    for number, start in enumerate(range(0, len(weights), size), 1):
        part = weights[start : start + size]
        scale, q = quantize_group(part)
        lines.append(f"group {number}: scale {scale:.5f} q {' '.join(map(str, q))}")
        errors += [abs(w - n * scale) for w, n in zip(part, q)]
    return "\n".join([*lines, f"mean error: {sum(errors) / len(errors):.5f}"])
