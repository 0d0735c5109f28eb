"""Recursion: the first guess, then the rest."""


def accept_greedy(draft, target):
    if not draft or draft[0] != target[0]:
        return (target[0],)
    return (target[0], *accept_greedy(draft[1:], target[1:]))
