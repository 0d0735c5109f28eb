"""The bonus token is forgotten: the sum ends at alpha to the power k - 1.

Hint: With k guesses, a round adds up to k + 1 tokens. How many terms has your sum?
Caught by: expected-values
"""


def expected_tokens(alpha, k):
    return sum(alpha**i for i in range(k))
