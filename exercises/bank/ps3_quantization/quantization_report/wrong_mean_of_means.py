"""The mean of the groups' means

Hint: A group of one weight counts as much as one of four in your version. What shall be averaged?
Caught by: report-mean-over-all-weights
"""


def quantization_report(text):
    weights, size = parse_quantization_input(text)
    lines, means = [], []
    for number, start in enumerate(range(0, len(weights), size), 1):
        part = weights[start : start + size]
        scale, q = quantize_group(part)
        lines.append(f"group {number}: scale {scale:.5f} q {' '.join(map(str, q))}")
        means.append(sum(abs(w - n * scale) for w, n in zip(part, q)) / len(part))
    return "\n".join([*lines, f"mean error: {sum(means) / len(means):.5f}"])
