"""The search stops as soon as one more guess gains less than 1 %.

Hint: Small gains are gains: go on as long as the next k is strictly better.
Caught by: best-length-values, best-length-may-be-large
"""


def best_draft_length(alpha, cost):
    def tokens(k):
        return sum(alpha**i for i in range(k + 1))

    k = 0
    while tokens(k + 1) / ((k + 1) * cost + 1) > 1.01 * tokens(k) / (k * cost + 1):
        k += 1
    return k
