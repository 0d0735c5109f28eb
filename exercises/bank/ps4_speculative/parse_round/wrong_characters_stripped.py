"""The label is taken away with lstrip, which strips letters, not a word.

Hint: `"draft:a".lstrip("draft:")` takes away every leading d, r, a, f, t and colon. You want removeprefix.
Caught by: round-parts
"""


def parse_round(line):
    halves = [half.strip() for half in line.split("|")]
    if len(halves) != 2 or not halves[0].startswith("draft:") or not halves[1].startswith("target:"):
        raise ValueError("expected draft: ... | target: ...")
    draft = halves[0].lstrip("draft:").split()
    target = halves[1].lstrip("target:").split()
    if len(target) != len(draft) + 1:
        raise ValueError("the target must be one longer than the draft")
    return draft, target
