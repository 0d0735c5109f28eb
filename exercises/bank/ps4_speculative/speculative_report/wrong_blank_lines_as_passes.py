"""Blank lines count as target passes.

Hint: A pass is a round. Blank lines are skipped.
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
        lines.append(f"round {len(lines) + 1}: +{len(tokens)} {' '.join(tokens)}")
    if not lines:
        raise ValueError("there is no round")
    passes = text.rstrip("\n").count("\n") + 1
    lines.append(f"{total} tokens in {passes} target passes ({total / passes:.2f} per pass)")
    return "\n".join(lines)
