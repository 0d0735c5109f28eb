"""Tokens are compared with `is`.

Hint: `is` asks whether two names mean the same object, which equal numbers and strings need not be. Use ==.
Caught by: greedy-stops-at-a-mismatch
"""


def accept_greedy(draft, target):
    n = 0
    while n < len(draft) and draft[n] is target[n]:
        n += 1
    return target[: n + 1]
