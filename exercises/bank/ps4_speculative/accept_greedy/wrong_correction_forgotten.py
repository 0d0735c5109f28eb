"""The correction is not added after a wrong guess.

Hint: Even a round without one right guess adds a token: the target's own.
Caught by: greedy-stops-at-a-mismatch
"""


def accept_greedy(draft, target):
    n = 0
    while n < len(draft) and draft[n] == target[n]:
        n += 1
    return target[: n + 1] if n == len(draft) else target[:n]
