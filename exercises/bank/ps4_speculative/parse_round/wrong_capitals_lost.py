"""The whole line is made lower case

Hint: `The` and `the` are two tokens, and the labels are written small.
Caught by: round-parts
"""


def parse_round(line):
    first, bar, second = line.lower().partition("|")
    first, second = first.strip(), second.strip()
    if not bar or not first.startswith("draft:") or not second.startswith("target:"):
        raise ValueError("a part is missing")
    draft, target = first[6:].split(), second[7:].split()
    if len(target) != len(draft) + 1:
        raise ValueError("the target must be one longer")
    return draft, target
