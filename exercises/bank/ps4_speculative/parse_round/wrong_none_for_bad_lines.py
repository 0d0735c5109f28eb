"""A malformed line gives None instead of an error.

Hint: Whoever calls this wants to know that the line is malformed: raise ValueError.
Caught by: round-refuses
"""


def parse_round(line):
    halves = [half.strip() for half in line.split("|")]
    if len(halves) != 2 or not halves[0].startswith("draft:") or not halves[1].startswith("target:"):
        return None
    draft, target = halves[0][len("draft:") :].split(), halves[1][len("target:") :].split()
    if len(target) != len(draft) + 1:
        return None
    return draft, target
