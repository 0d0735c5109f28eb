"""The sum without an end: 1 / (1 - alpha).

Hint: That is the limit for very large k. How many terms are there for k guesses?
Caught by: expected-values
"""


def expected_tokens(alpha, k):
    return 1 / (1 - alpha) if alpha < 1 else k + 1
