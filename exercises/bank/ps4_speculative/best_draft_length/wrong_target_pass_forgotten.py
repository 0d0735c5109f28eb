"""The target's own pass is not counted in the time of a round.

Hint: A round takes k passes of the draft and one of the target: k * cost + 1.
Caught by: best-length-values
"""


def best_draft_length(alpha, cost):
    def tokens(k):
        return sum(alpha**i for i in range(k + 1))

    return max(range(1, 1000), key=lambda k: tokens(k) / (k * cost))
