"""Only k up to 50 are tried.

Hint: Where the draft is nearly free, k may be in the hundreds. When can you stop?
Caught by: best-length-may-be-large
"""


def best_draft_length(alpha, cost):
    def tokens(k):
        return sum(alpha**i for i in range(k + 1))

    return max(range(51), key=lambda k: tokens(k) / (k * cost + 1))
