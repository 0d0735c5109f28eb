"""The cache that is returned lacks the new token

Hint: The result is right, but the next step will not know this token. Which cache do you return?
Caught by: attend-new-cache, attend-equals-full-recomputation
"""


def attend_with_cache(q, k, v, cache):
    K, V = np.concatenate([cache[0], k[:, None]], axis=1), np.concatenate([cache[1], v[:, None]], axis=1)
    heads, head_dim = q.shape
    group = heads // K.shape[0]
    out = np.zeros_like(q)
    for h in range(heads):
        scores = K[h // group] @ q[h] / np.sqrt(head_dim)
        weights = np.exp(scores - scores.max())
        out[h] = weights / weights.sum() @ V[h // group]
    return out, cache
