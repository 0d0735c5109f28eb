"""The total of all values in place of a list of totals

Hint: How many numbers should come back for three values?
Caught by: test-running-total
"""


def running_total(values):
    return sum(values)
