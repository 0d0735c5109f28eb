"""Any target list longer than the draft is accepted.

Hint: Exactly one longer: the target predicts each drafted position and one more.
Caught by: round-refuses
"""


def parse_round(line):
    halves = [half.strip() for half in line.split("|")]
    if len(halves) != 2 or not halves[0].startswith("draft:") or not halves[1].startswith("target:"):
        raise ValueError("expected draft: ... | target: ...")
    draft, target = halves[0][len("draft:") :].split(), halves[1][len("target:") :].split()
    if len(target) <= len(draft):
        raise ValueError("the target is too short")
    return draft, target
