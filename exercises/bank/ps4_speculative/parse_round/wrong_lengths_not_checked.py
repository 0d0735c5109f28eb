"""The lengths of the two lists are not compared.

Hint: Two drafted tokens need three of the target. What does your function do with two?
Caught by: round-refuses
"""


def parse_round(line):
    halves = [half.strip() for half in line.split("|")]
    if len(halves) != 2 or not halves[0].startswith("draft:") or not halves[1].startswith("target:"):
        raise ValueError("expected draft: ... | target: ...")
    draft, target = halves[0][len("draft:") :].split(), halves[1][len("target:") :].split()
    return draft, target
