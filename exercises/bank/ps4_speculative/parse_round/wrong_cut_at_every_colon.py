"""The line is cut at every colon, also at those inside of tokens.

Hint: A token may be `http:`. Which colons separate something, and which belong to a token?
Caught by: round-parts
"""


def parse_round(line):
    halves = [half.strip() for half in line.split("|")]
    if len(halves) != 2 or not halves[0].startswith("draft:") or not halves[1].startswith("target:"):
        raise ValueError("expected draft: ... | target: ...")
    draft, target = halves[0].split(":")[1].split(), halves[1].split(":")[1].split()
    if len(target) != len(draft) + 1:
        raise ValueError("the target must be one longer than the draft")
    return draft, target
