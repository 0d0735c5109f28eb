"""The upper one of the two in the middle

Hint: Which two numbers are in the middle of four?
Caught by: bonus-median
"""


def median(values):
    return sorted(values)[len(values) // 2]
