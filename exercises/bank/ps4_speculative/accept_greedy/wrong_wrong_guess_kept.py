"""The wrong guess is kept instead of the target's token.

Hint: At the first difference, whose token goes into the text?
Caught by: greedy-stops-at-a-mismatch
"""


def accept_greedy(draft, target):
    n = 0
    while n < len(draft) and draft[n] == target[n]:
        n += 1
    return target if n == len(draft) else draft[: n + 1]
