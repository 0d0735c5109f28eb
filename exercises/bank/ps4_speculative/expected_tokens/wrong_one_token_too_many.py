"""The sum has one term too many, up to alpha to the power k + 1.

Hint: Check with k = 0: nothing is guessed, a round adds exactly one token.
Caught by: expected-values
"""


def expected_tokens(alpha, k):
    return sum(alpha**i for i in range(k + 2))
