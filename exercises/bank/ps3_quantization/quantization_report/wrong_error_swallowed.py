"""Malformed text answered with a report that says so

Hint: Whoever calls your function cannot tell such a text from a report. What shall happen to the ValueError?
Caught by: report-refuses-bad-input
"""


def quantization_report(text):
    try:
        weights, size = parse_quantization_input(text)
    except ValueError as error:
        return f"error: {error}"
    lines, errors = [], []
    for number, start in enumerate(range(0, len(weights), size), 1):
        part = weights[start : start + size]
        scale, q = quantize_group(part)
        lines.append(f"group {number}: scale {scale:.5f} q {' '.join(map(str, q))}")
        errors += [abs(w - n * scale) for w, n in zip(part, q)]
    return "\n".join([*lines, f"mean error: {sum(errors) / len(errors):.5f}"])
