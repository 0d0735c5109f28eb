"""The new token put in front of the old ones

Hint: The result does not show it, but the cache does: the oldest token comes first.
Caught by: attend-new-cache
"""


def attend_with_cache(q, k, v, cache):
    K, V = np.concatenate([k[:, None], cache[0]], axis=1), np.concatenate([v[:, None], cache[1]], axis=1)
    heads, head_dim = q.shape
    group = heads // K.shape[0]
    out = np.zeros_like(q)
    for h in range(heads):
        scores = K[h // group] @ q[h] / np.sqrt(head_dim)
        weights = np.exp(scores - scores.max())
        out[h] = weights / weights.sum() @ V[h // group]
    return out, (K, V)
