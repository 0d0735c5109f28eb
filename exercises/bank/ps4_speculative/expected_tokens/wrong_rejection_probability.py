"""alpha is taken for the probability of a rejection.

Hint: The higher alpha, the more guesses are right. Does your number grow with alpha?
Caught by: expected-values, expected-at-the-ends
"""


def expected_tokens(alpha, k):
    return sum((1 - alpha) ** i for i in range(k + 1))
