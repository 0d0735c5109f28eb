"""itertools.accumulate and bisect over the tokens with a residual."""

from bisect import bisect_right
from itertools import accumulate


def accept_or_resample(p, q, token, u, v):
    if not u >= p[token] / q[token]:
        return (True, token)
    left_over = {t: p[t] - q[t] for t in range(len(p)) if p[t] > q[t]}
    total = sum(left_over.values())
    edges = list(accumulate(part / total for part in left_over.values()))
    place = bisect_right(edges, v)
    return (False, [*left_over, max(left_over)][place])
