"""Five significant digits instead of five decimals

Hint: 1.00000 has five digits behind the point. Compare `:.5f` with `:.5g` and with `round`.
Caught by: report-one-group, report-last-group-may-be-shorter
"""


def quantization_report(text):
    weights, size = parse_quantization_input(text)
    lines, errors = [], []
    for number, start in enumerate(range(0, len(weights), size), 1):
        part = weights[start : start + size]
        scale, q = quantize_group(part)
        lines.append(f"group {number}: scale {scale:.5g} q {' '.join(map(str, q))}")
        errors += [abs(w - n * scale) for w, n in zip(part, q)]
    return "\n".join([*lines, f"mean error: {sum(errors) / len(errors):.5g}"])
