"""At alpha = 0 it is taken as 0 tokens.

Hint: If no guess is ever right, a round still adds the correction.
Caught by: expected-at-the-ends
"""


def expected_tokens(alpha, k):
    if alpha == 0:
        return 0
    if alpha == 1:
        return k + 1
    return (1 - alpha ** (k + 1)) / (1 - alpha)
