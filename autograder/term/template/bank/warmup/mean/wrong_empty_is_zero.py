"""An empty list has the mean 0

Hint: What should happen where there is nothing to take the mean of?
Caught by: test-mean-empty
"""


def mean(values):
    return sum(values) / len(values) if values else 0
