"""The last, shorter group dropped

Hint: Seven weights in groups of three: how many groups, and where is the seventh weight?
Caught by: report-last-group-may-be-shorter
"""


def quantization_report(text):
    weights, size = parse_quantization_input(text)
    lines, errors = [], [0.0] if size > len(weights) else []
    for number in range(len(weights) // size):
        part = weights[number * size : (number + 1) * size]
        scale, q = quantize_group(part)
        lines.append(f"group {number + 1}: scale {scale:.5f} q {' '.join(map(str, q))}")
        errors += [abs(w - n * scale) for w, n in zip(part, q)]
    return "\n".join([*lines, f"mean error: {sum(errors) / len(errors):.5f}"])
