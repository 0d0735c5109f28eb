"""Either all guesses are kept or none.

Hint: The guesses before the first wrong one were right: keep them.
Caught by: greedy-stops-at-a-mismatch
"""


def accept_greedy(draft, target):
    return list(target) if list(draft) == list(target)[:-1] else [target[0]]
