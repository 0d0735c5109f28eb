"""Each guess adds alpha, as if the later ones did not need the earlier ones.

Hint: The second guess counts only if the first one was right too: alpha squared.
Caught by: expected-values
"""


def expected_tokens(alpha, k):
    return 1 + k * alpha
