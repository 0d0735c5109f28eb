"""One scale for all groups

Hint: Each group has a scale of its own. Where do you compute yours?
Caught by: report-last-group-may-be-shorter
"""


def quantization_report(text):
    weights, size = parse_quantization_input(text)
    scale, every_q = quantize_group(weights)
    lines, errors = [], [abs(w - n * scale) for w, n in zip(weights, every_q)]
    for number, start in enumerate(range(0, len(weights), size), 1):
        q = every_q[start : start + size]
        lines.append(f"group {number}: scale {scale:.5f} q {' '.join(map(str, q))}")
    return "\n".join([*lines, f"mean error: {sum(errors) / len(errors):.5f}"])
