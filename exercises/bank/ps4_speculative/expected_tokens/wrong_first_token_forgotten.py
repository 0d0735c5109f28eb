"""The token that is certain is forgotten: only accepted guesses are counted.

Hint: Even with alpha = 0, a round adds one token, the target's own.
Caught by: expected-values, expected-at-the-ends
"""


def expected_tokens(alpha, k):
    return sum(alpha**i for i in range(1, k + 1))
