"""The expectation is cut to a whole number.

Hint: An average need not be a whole number.
Caught by: expected-values
"""


def expected_tokens(alpha, k):
    return int(sum(alpha**i for i in range(k + 1)))
