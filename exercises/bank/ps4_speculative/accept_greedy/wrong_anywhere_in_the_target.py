"""A guess counts as right if the target has it at any position.

Hint: Position by position: the first guess against the first token of the target, and so on.
Caught by: greedy-stops-at-a-mismatch
"""


def accept_greedy(draft, target):
    n = 0
    while n < len(draft) and draft[n] in target:
        n += 1
    return [*draft[:n], target[n]]
