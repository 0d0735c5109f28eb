"""Only k up to 10 are tried.

Hint: Nothing says that k is at most 10. When can you stop?
Caught by: best-length-values, best-length-may-be-large
"""


def best_draft_length(alpha, cost):
    def tokens(k):
        return sum(alpha**i for i in range(k + 1))

    return max(range(11), key=lambda k: tokens(k) / (k * cost + 1))
