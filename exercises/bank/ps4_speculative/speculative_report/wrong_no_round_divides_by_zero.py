"""A text without any round ends in a division by zero.

Hint: How many rounds has a text of blank lines? Look before you divide.
Caught by: report-names-the-line
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

    lines.append(f"{total} tokens in {len(lines)} target passes ({total / len(lines):.2f} per pass)")
    return "\n".join(lines)
