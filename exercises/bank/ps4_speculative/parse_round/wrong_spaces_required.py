"""A space is required on both sides of the bar and after the colons.

Hint: White space around the parts does not matter, and there may be none: `draft:a|target:a b`.
Caught by: round-parts
"""


def parse_round(line):
    head, bar, tail = line.strip().partition(" | ")
    if not bar or not head.startswith("draft:") or not tail.startswith("target:"):
        raise ValueError("expected draft: ... | target: ...")
    draft, target = head[len("draft:") :].split(), tail[len("target:") :].split()
    if len(target) != len(draft) + 1:
        raise ValueError("the target must be one longer than the draft")
    return draft, target
