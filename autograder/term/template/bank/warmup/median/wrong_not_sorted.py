"""The value in the middle of the list as it comes

Hint: Does your function give the same for [1, 2, 3] and [3, 1, 2]?
Caught by: bonus-median
"""


def median(values):
    half = len(values) // 2
    return values[half] if len(values) % 2 else (values[half - 1] + values[half]) / 2
