"""Where all guesses were right, the bonus token is forgotten.

Hint: The target predicts one token more than was drafted. What becomes of it where everything matched?
Caught by: greedy-adds-the-bonus
"""


def accept_greedy(draft, target):
    for i, guess in enumerate(draft):
        if guess != target[i]:
            return target[: i + 1]
    return list(draft)
