"""The length with the shortest round is taken.

Hint: A short round also brings fewer tokens.
Caught by: best-length-values
"""


def best_draft_length(alpha, cost):
    return min(range(1000), key=lambda k: k * cost + 1)
