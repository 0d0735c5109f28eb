"""One function that quantizes by itself"""


def quantization_report(text):
    weights, size = parse_quantization_input(text)
    out, total = [], 0.0
    for start in range(0, len(weights), size):
        part = weights[start : start + size]
        scale = max(map(abs, part)) / 127
        q = [round(w / scale) if scale else 0 for w in part]
        total += sum(abs(w - n * scale) for w, n in zip(part, q))
        out.append(f"group {start // size + 1}: scale {format(scale, '.5f')} q " + " ".join(map(str, q)) + "\n")
    return "".join(out) + f"mean error: {format(total / len(weights), '.5f')}"
