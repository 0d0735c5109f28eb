"""The new token does not see itself

Hint: The new token attends to the old ones only. When do you append its key and value?
Caught by: attend-by-hand, attend-first-token
"""


def attend_with_cache(q, k, v, cache):
    K, V = cache
    heads, head_dim = q.shape
    group = heads // K.shape[0]
    out = np.zeros_like(q)
    for h in range(heads):
        scores = K[h // group] @ q[h] / np.sqrt(head_dim)
        weights = np.exp(scores - scores.max())
        out[h] = weights / weights.sum() @ V[h // group]
    return out, (np.concatenate([K, k[:, None]], axis=1), np.concatenate([V, v[:, None]], axis=1))
