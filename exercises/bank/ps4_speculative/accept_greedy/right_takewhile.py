"""itertools.takewhile over the pairs."""

from itertools import takewhile


def accept_greedy(draft, target):
    kept = [guess for guess, _ in takewhile(lambda pair: pair[0] == pair[1], zip(draft, target, strict=False))]
    return [*kept, target[len(kept)]]
