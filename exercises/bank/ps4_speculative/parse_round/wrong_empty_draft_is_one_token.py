"""An empty draft becomes a list with one empty token.

Hint: "".split(" ") is not the same as "".split(). How many tokens does an empty draft have?
Caught by: round-parts
"""


def parse_round(line):
    halves = [half.strip() for half in line.split("|")]
    if len(halves) != 2 or not halves[0].startswith("draft:") or not halves[1].startswith("target:"):
        raise ValueError("expected draft: ... | target: ...")
    draft = halves[0][len("draft:") :].strip().split(" ")
    target = halves[1][len("target:") :].strip().split(" ")
    if len(target) != len(draft) + 1:
        raise ValueError("the target must be one longer than the draft")
    return draft, target
