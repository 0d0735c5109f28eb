"""Scores used as weights as they are, without softmax

Hint: Weights are positive and add up to 1. What turns scores into such numbers?
Caught by: attend-by-hand, attend-first-token
"""


def attend_with_cache(q, k, v, cache):
    K, V = np.concatenate([cache[0], k[:, None]], axis=1), np.concatenate([cache[1], v[:, None]], axis=1)
    heads, head_dim = q.shape
    group = heads // K.shape[0]
    out = np.zeros_like(q)
    for h in range(heads):
        scores = K[h // group] @ q[h] / np.sqrt(head_dim)
        out[h] = scores @ V[h // group] / K.shape[1]
    return out, (K, V)
