"""Everything with NumPy, lines gathered at the end"""


def quantization_report(text):
    weights, size = parse_quantization_input(text)
    report, error = [], np.zeros(0)
    while len(weights):
        part, weights = weights[:size], weights[size:]
        scale, q = quantize_group(part)
        error = np.concatenate([error, np.abs(np.asarray(part) - np.asarray(q) * scale)])
        numbers = " ".join(str(int(n)) for n in q)
        report.append("group %d: scale %.5f q %s" % (len(report) + 1, scale, numbers))
    report.append("mean error: %.5f" % error.mean())
    return "\n".join(report)
