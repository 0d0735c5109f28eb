"""The quotient is rounded, but not written with two decimals.

Hint: 2.5 is written 2.50: a format does that, round does not.
Caught by: report-rounds
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
        lines.append(f"round {len(lines) + 1}: +{len(tokens)} {' '.join(tokens)}")
    if not lines:
        raise ValueError("there is no round")
    lines.append(f"{total} tokens in {len(lines)} target passes ({round(total / len(lines), 2)} per pass)")
    return "\n".join(lines)
