"""A malformed line is skipped in silence.

Hint: A line that is not understood is an error that names the line, not a blank one.
Caught by: report-names-the-line
"""


def speculative_report(text):
    lines, total = [], 0
    for number, line in enumerate(text.split("\n"), start=1):
        if not line.strip():
            continue
        try:
            draft, target = parse_round(line)
        except ValueError:
            continue
        tokens = accept_greedy(draft, target)
        total += len(tokens)
        lines.append(f"round {len(lines) + 1}: +{len(tokens)} {' '.join(tokens)}")
    if not lines:
        raise ValueError("there is no round")
    lines.append(f"{total} tokens in {len(lines)} target passes ({total / len(lines):.2f} per pass)")
    return "\n".join(lines)
