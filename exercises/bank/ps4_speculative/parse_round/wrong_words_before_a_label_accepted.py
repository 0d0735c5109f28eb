"""The labels are looked for anywhere in their halves

Hint: What does your function do with a word in front of `draft:` or `target:`?
Caught by: round-refuses
"""


def parse_round(line):
    first, bar, second = line.partition("|")
    if not bar or "draft:" not in first or "target:" not in second:
        raise ValueError("a part is missing")
    draft, target = first.split("draft:", 1)[1].split(), second.split("target:", 1)[1].split()
    if len(target) != len(draft) + 1:
        raise ValueError("the target must be one longer")
    return draft, target
