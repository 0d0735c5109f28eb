"""The best speed-up is returned instead of the length that gives it.

Hint: Return the k, a whole number, not its S.
Caught by: best-length-values, best-length-may-be-large
"""


def best_draft_length(alpha, cost):
    def tokens(k):
        return sum(alpha**i for i in range(k + 1))

    return max(tokens(k) / (k * cost + 1) for k in range(1000))
