"""The cost is subtracted from the tokens instead of dividing by the time.

Hint: The speed-up is tokens divided by time.
Caught by: best-length-values
"""


def best_draft_length(alpha, cost):
    def tokens(k):
        return sum(alpha**i for i in range(k + 1))

    return max(range(1000), key=lambda k: tokens(k) - k * cost)
