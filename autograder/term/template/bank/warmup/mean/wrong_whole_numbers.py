"""Whole-number division in place of division

Hint: `//` rounds down to a whole number. Which division keeps the fraction?
Caught by: test-mean
"""


def mean(values):
    if not values:
        raise ValueError("an empty list has no mean")
    return sum(values) // len(values)
