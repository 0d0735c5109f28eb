"""Of two equally good lengths the larger one is taken.

Hint: Go on only where the next k is strictly better.
Caught by: best-length-ties
"""


def best_draft_length(alpha, cost):
    def tokens(k):
        return sum(alpha**i for i in range(k + 1))

    best = 0
    for k in range(1, 1000):
        if tokens(k) / (k * cost + 1) >= tokens(best) / (best * cost + 1):
            best = k
    return best
