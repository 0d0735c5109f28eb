"""The length with the most tokens is taken, whatever the guesses cost.

Hint: More guesses always bring more tokens. What do they cost?
Caught by: best-length-values
"""


def best_draft_length(alpha, cost):
    return 1000 if alpha > 0 else 0
