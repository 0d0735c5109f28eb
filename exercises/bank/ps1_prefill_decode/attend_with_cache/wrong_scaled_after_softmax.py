"""The division by the root of head_dim applied to the weights

Hint: The weights of one query must add up to 1. Do yours?
Caught by: attend-by-hand, attend-first-token
"""


def attend_with_cache(q, k, v, cache):
    K, V = np.concatenate([cache[0], k[:, None]], axis=1), np.concatenate([cache[1], v[:, None]], axis=1)
    heads, head_dim = q.shape
    group = heads // K.shape[0]
    out = np.zeros_like(q)
    for h in range(heads):
        scores = K[h // group] @ q[h]
        weights = np.exp(scores - scores.max())
        out[h] = weights / weights.sum() / np.sqrt(head_dim) @ V[h // group]
    return out, (K, V)
