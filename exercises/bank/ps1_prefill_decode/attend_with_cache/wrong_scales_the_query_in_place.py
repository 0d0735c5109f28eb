"""The caller's query divided in place

Hint: `q /= ...` changes the caller's array. Print your inputs before and after the call.
Caught by: attend-leaves-the-old-cache
"""


def attend_with_cache(q, k, v, cache):
    K, V = np.concatenate([cache[0], k[:, None]], axis=1), np.concatenate([cache[1], v[:, None]], axis=1)
    heads, head_dim = q.shape
    group = heads // K.shape[0]
    q /= np.sqrt(head_dim)
    out = np.zeros_like(q)
    for h in range(heads):
        scores = K[h // group] @ q[h]
        weights = np.exp(scores - scores.max())
        out[h] = weights / weights.sum() @ V[h // group]
    return out, (K, V)
