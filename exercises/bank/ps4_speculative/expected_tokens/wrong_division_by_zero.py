"""The formula divides by zero at alpha = 1.

Hint: At alpha = 1 the fraction is 0 / 0. What is the sum 1 + 1 + ... there?
Caught by: expected-at-the-ends
"""


def expected_tokens(alpha, k):
    return (1 - alpha ** (k + 1)) / (1 - alpha)
