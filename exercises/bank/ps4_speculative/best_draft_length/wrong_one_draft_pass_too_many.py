"""A round is charged k + 1 passes of the draft.

Hint: k guesses take k passes of the draft. What is the speed-up at k = 0? It should be 1.
Caught by: best-length-values
"""


def best_draft_length(alpha, cost):
    def tokens(k):
        return sum(alpha**i for i in range(k + 1))

    return max(range(1000), key=lambda k: tokens(k) / ((k + 1) * cost + 1))
