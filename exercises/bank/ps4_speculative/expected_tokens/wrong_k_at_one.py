"""At alpha = 1 it is taken as k.

Hint: All k guesses are right, and then comes the bonus token.
Caught by: expected-at-the-ends
"""


def expected_tokens(alpha, k):
    if alpha == 1:
        return k
    return (1 - alpha ** (k + 1)) / (1 - alpha)
