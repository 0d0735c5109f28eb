"""The labels are cut off without a look at them.

Hint: What does your function make of `a b | target: a b c`, which has no `draft:`?
Caught by: round-refuses
"""


def parse_round(line):
    if line.count("|") != 1:
        raise ValueError("expected one bar")
    head, tail = line.split("|")
    draft, target = head.split(":", 1)[-1].split(), tail.split(":", 1)[-1].split()
    if len(target) != len(draft) + 1:
        raise ValueError("the target must be one longer than the draft")
    return draft, target
