"""The last guess is never compared

Hint: Write down which positions your loop looks at when the draft has two tokens. Is the last one among them?
Caught by: greedy-adds-the-bonus
"""


def accept_greedy(draft, target):
    n = 0
    while n < len(draft) - 1 and draft[n] == target[n]:
        n += 1
    return target[: n + 1]
