"""Scores not divided by the root of head_dim

Hint: Compare your scores with those of the example by hand. What are they divided by?
Caught by: attend-by-hand, attend-equals-full-recomputation
"""


def attend_with_cache(q, k, v, cache):
    K, V = np.concatenate([cache[0], k[:, None]], axis=1), np.concatenate([cache[1], v[:, None]], axis=1)
    group = q.shape[0] // K.shape[0]
    out = np.zeros_like(q)
    for h in range(q.shape[0]):
        scores = K[h // group] @ q[h]
        weights = np.exp(scores - scores.max())
        out[h] = weights / weights.sum() @ V[h // group]
    return out, (K, V)
