"""The report is printed, and nothing is returned.

Hint: What is printed is seen by you alone. The function hands its text back with `return`.
Caught by: report-one-group
"""


def quantization_report(text):
    weights, size = parse_quantization_input(text)
    lines, total = [], 0.0
    for start in range(0, len(weights), size):
        group = weights[start : start + size]
        scale, q = quantize_group(group)
        total += sum(abs(w - n * scale) for w, n in zip(group, q, strict=True))
        lines.append(f"group {len(lines) + 1}: scale {scale:.5f} q " + " ".join(map(str, q)))
    lines.append(f"mean error: {total / len(weights):.5f}")
    print("\n".join(lines))
