"""Guesses are compared with the target's token one position later.

Hint: target[0] is the target's own first token, at the position of draft[0].
Caught by: greedy-stops-at-a-mismatch, greedy-adds-the-bonus
"""


def accept_greedy(draft, target):
    n = 0
    while n < len(draft) and draft[n] == target[n + 1]:
        n += 1
    return [*draft[:n], target[n]]
