"""Guesses are made as long as all of them are right with at least even odds.

Hint: It is not about odds: compare the speed-up of k + 1 with that of k.
Caught by: best-length-values
"""


def best_draft_length(alpha, cost):
    k = 0
    while alpha ** (k + 1) >= 0.5:
        k += 1
    return k
