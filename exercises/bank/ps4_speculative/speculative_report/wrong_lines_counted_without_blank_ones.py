"""The line in the message is counted without blank lines.

Hint: Whoever looks for line 3 in an editor counts blank lines too.
Caught by: report-names-the-line
"""


def speculative_report(text):
    lines, total = [], 0
    for number, line in enumerate((row for row in text.split("\n") if row.strip()), start=1):
        try:
            draft, target = parse_round(line)
        except ValueError as error:
            raise ValueError(f"line {number}: {error}") from None
        tokens = accept_greedy(draft, target)
        total += len(tokens)
        lines.append(f"round {len(lines) + 1}: +{len(tokens)} {' '.join(tokens)}")
    if not lines:
        raise ValueError("there is no round")
    lines.append(f"{total} tokens in {len(lines)} target passes ({total / len(lines):.2f} per pass)")
    return "\n".join(lines)
