"""The label is removed wherever it stands, also where it is a token.

Hint: `draft:` and `target:` may be tokens as well. Only the first one of each part is a label.
Caught by: round-parts
"""


def parse_round(line):
    halves = [half.strip() for half in line.split("|")]
    if len(halves) != 2 or not halves[0].startswith("draft:") or not halves[1].startswith("target:"):
        raise ValueError("expected draft: ... | target: ...")
    draft = halves[0].replace("draft:", "").split()
    target = halves[1].replace("target:", "").split()
    if len(target) != len(draft) + 1:
        raise ValueError("the target must be one longer than the draft")
    return draft, target
