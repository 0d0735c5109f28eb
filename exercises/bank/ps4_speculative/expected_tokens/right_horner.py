"""Horner's scheme, no power and no division."""


def expected_tokens(alpha, k):
    total = 1.0
    for _ in range(k):
        total = 1 + alpha * total
    return total
