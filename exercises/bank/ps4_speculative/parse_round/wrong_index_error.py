"""A missing part ends in an IndexError.

Hint: A line without `|` has no second half. Check before you take it, and raise ValueError.
Caught by: round-refuses
"""


def parse_round(line):
    halves = [half.strip() for half in line.split("|")]
    if not halves[1].startswith("target:") or not halves[0].startswith("draft:"):
        raise ValueError("expected draft: ... | target: ...")
    draft, target = halves[0][len("draft:") :].split(), halves[1][len("target:") :].split()

    if len(target) != len(draft) + 1:
        raise ValueError("the target must be one longer than the draft")
    return draft, target
