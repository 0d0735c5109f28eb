"""The two parts are returned as strings.

Hint: The contract asks for two lists of tokens.
Caught by: round-parts
"""


def parse_round(line):
    halves = [half.strip() for half in line.split("|")]
    if len(halves) != 2 or not halves[0].startswith("draft:") or not halves[1].startswith("target:"):
        raise ValueError("expected draft: ... | target: ...")
    draft, target = halves[0][len("draft:") :].split(), halves[1][len("target:") :].split()
    if len(target) != len(draft) + 1:
        raise ValueError("the target must be one longer than the draft")
    return " ".join(draft), " ".join(target)
