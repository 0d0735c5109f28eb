"""Sums each beginning exactly, so the last digits differ"""


def running_total(values):
    from math import fsum

    return [fsum(values[: i + 1]) for i in range(len(values))]
