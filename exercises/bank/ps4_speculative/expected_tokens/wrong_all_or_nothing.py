"""Either all k + 1 tokens come or just one.

Hint: The guesses before the first wrong one are kept.
Caught by: expected-values
"""


def expected_tokens(alpha, k):
    return 1 + k * alpha**k
