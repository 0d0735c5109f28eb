"""The tokens are counted without the bonus.

Hint: k guesses can bring k + 1 tokens. Use the function of part 4.
Caught by: best-length-values
"""


def best_draft_length(alpha, cost):
    def tokens(k):
        return sum(alpha**i for i in range(max(k, 1)))

    return max(range(1000), key=lambda k: tokens(k) / (k * cost + 1))
