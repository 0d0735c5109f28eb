"""Loops and plain Python numbers, lists returned"""

import math


def attend_with_cache(q, k, v, cache):
    heads, head_dim = len(q), len(q[0])
    kv_heads = len(k)
    K = [[list(map(float, key)) for key in cache[0][h]] + [list(map(float, k[h]))] for h in range(kv_heads)]
    V = [[list(map(float, value)) for value in cache[1][h]] + [list(map(float, v[h]))] for h in range(kv_heads)]
    out = []
    for h in range(heads):
        kv = h * kv_heads // heads
        scores = [sum(float(a) * b for a, b in zip(q[h], key)) / math.sqrt(head_dim) for key in K[kv]]
        top = max(scores)
        weights = [math.exp(score - top) for score in scores]
        total = sum(weights)
        out.append([sum(w * value[i] for w, value in zip(weights, V[kv])) / total for i in range(head_dim)])
    return out, (K, V)
