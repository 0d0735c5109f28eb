"""α near 1 is treated as 1

Hint: Only at α = 1 itself the fraction is 0 / 0. Which α does your function treat like 1?
Caught by: expected-at-the-ends
"""


def expected_tokens(alpha, k):
    if abs(1 - alpha) < 1e-3:
        return k + 1
    return (1 - alpha ** (k + 1)) / (1 - alpha)
