"""A line end after the last line

Hint: The lines are joined by line ends; the last one has none.
Caught by: report-one-group
"""


def quantization_report(text):
    weights, size = parse_quantization_input(text)
    report, errors = "", []
    for number, start in enumerate(range(0, len(weights), size), 1):
        part = weights[start : start + size]
        scale, q = quantize_group(part)
        report += f"group {number}: scale {scale:.5f} q {' '.join(map(str, q))}\n"
        errors += [abs(w - n * scale) for w, n in zip(part, q)]
    return report + f"mean error: {sum(errors) / len(errors):.5f}\n"
