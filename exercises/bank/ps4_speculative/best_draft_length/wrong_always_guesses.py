"""Guessing nothing is not considered: the search starts at k = 1.

Hint: Where guesses are poor or dear, k = 0 with its speed of 1 is best.
Caught by: best-length-may-be-zero, best-length-ties
"""


def best_draft_length(alpha, cost):
    def tokens(k):
        return sum(alpha**i for i in range(k + 1))

    return max(range(1, 1000), key=lambda k: tokens(k) / (k * cost + 1))
