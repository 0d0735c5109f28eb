"""The new token written over the last one of the old cache

Hint: Call your function and print the old cache again. It also stays as long as it was: where is the token
before?
Caught by: attend-new-cache, attend-leaves-the-old-cache
"""


def attend_with_cache(q, k, v, cache):
    K, V = cache
    if K.shape[1] == 0:
        K, V = k[:, None].copy(), v[:, None].copy()
    else:
        K[:, -1], V[:, -1] = k, v
    heads, head_dim = q.shape
    group = heads // K.shape[0]
    out = np.zeros_like(q)
    for h in range(heads):
        scores = K[h // group] @ q[h] / np.sqrt(head_dim)
        weights = np.exp(scores - scores.max())
        out[h] = weights / weights.sum() @ V[h // group]
    return out, (K, V)
