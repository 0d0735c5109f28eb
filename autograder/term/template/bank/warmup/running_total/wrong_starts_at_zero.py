"""The totals start with 0, before the first value

Hint: The first total is the first value.
Caught by: test-running-total
"""


def running_total(values):
    totals = [0]
    for value in values:
        totals.append(totals[-1] + value)
    return totals
