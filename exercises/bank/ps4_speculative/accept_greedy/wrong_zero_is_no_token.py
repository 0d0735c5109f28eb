"""The token 0 is treated as if there were none.

Hint: `if token` is false for 0 as well, and 0 is a token like any other.
Caught by: greedy-token-zero
"""


def accept_greedy(draft, target):
    kept = []
    for guess, right in zip(draft, target, strict=False):
        if not guess or guess != right:
            break
        kept.append(guess)
    following = target[len(kept)]
    return [*kept, following] if following else kept
