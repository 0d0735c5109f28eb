"""The correction is followed by one token more.

Hint: A round adds one token of the target: the correction or the bonus, never both.
Caught by: greedy-stops-at-a-mismatch
"""


def accept_greedy(draft, target):
    n = 0
    while n < len(draft) and draft[n] == target[n]:
        n += 1
    return target[: n + 1] if n == len(draft) else target[: n + 2]
