"""Adds one value at a time"""


def mean(values):
    if len(values) == 0:
        raise ValueError("nothing to average")
    total = 0.0
    for value in values:
        total += value / len(values)
    return total
