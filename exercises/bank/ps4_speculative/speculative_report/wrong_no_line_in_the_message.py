"""The error of parse_round passes as it is, without the line's number.

Hint: Catch the ValueError and raise one whose message says where it happened.
Caught by: report-names-the-line
"""


def speculative_report(text):
    lines, total = [], 0
    for line in text.split("\n"):
        if line.strip():
            tokens = accept_greedy(*parse_round(line))
            total += len(tokens)
            lines.append(f"round {len(lines) + 1}: +{len(tokens)} {' '.join(tokens)}")
    if not lines:
        raise ValueError("there is no round")
    lines.append(f"{total} tokens in {len(lines)} target passes ({total / len(lines):.2f} per pass)")
    return "\n".join(lines)
