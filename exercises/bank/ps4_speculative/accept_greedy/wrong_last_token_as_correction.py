"""The last token of the target is added instead of the one at the mismatch.

Hint: Which position has the correction? The last one was predicted after guesses that are thrown away.
Caught by: greedy-stops-at-a-mismatch
"""


def accept_greedy(draft, target):
    n = 0
    while n < len(draft) and draft[n] == target[n]:
        n += 1
    return [*draft[:n], target[-1]]
