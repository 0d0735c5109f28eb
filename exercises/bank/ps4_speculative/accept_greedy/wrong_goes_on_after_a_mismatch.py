"""Guesses that match again after a wrong one are accepted.

Hint: The target predicted the later tokens given the wrong guess. What comes after the first mismatch is worth
nothing.
Caught by: greedy-stops-at-a-mismatch
"""


def accept_greedy(draft, target):
    return [guess for guess, right in zip(draft, target, strict=False) if guess == right] + [target[-1]]
