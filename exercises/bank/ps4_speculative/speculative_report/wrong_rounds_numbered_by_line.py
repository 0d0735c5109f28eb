"""A round has the number of its line, so that blank lines count.

Hint: Blank lines are no rounds. How many rounds have you reported so far?
Caught by: report-skips-blank-lines
"""


def speculative_report(text):
    lines, total = [], 0
    for number, line in enumerate(text.split("\n"), start=1):
        if not line.strip():
            continue
        try:
            draft, target = parse_round(line)
        except ValueError as error:
            raise ValueError(f"line {number}: {error}") from None
        tokens = accept_greedy(draft, target)
        total += len(tokens)
        lines.append(f"round {number}: +{len(tokens)} {' '.join(tokens)}")
    if not lines:
        raise ValueError("there is no round")
    lines.append(f"{total} tokens in {len(lines)} target passes ({total / len(lines):.2f} per pass)")
    return "\n".join(lines)
