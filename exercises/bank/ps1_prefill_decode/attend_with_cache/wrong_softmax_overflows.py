"""exp of the raw scores

Hint: exp(1000) is infinite, and infinite divided by infinite is nan. What may be subtracted from all scores?
Caught by: attend-large-scores
"""


def attend_with_cache(q, k, v, cache):
    K, V = np.concatenate([cache[0], k[:, None]], axis=1), np.concatenate([cache[1], v[:, None]], axis=1)
    heads, head_dim = q.shape
    group = heads // K.shape[0]
    out = np.zeros_like(q)
    for h in range(heads):
        weights = np.exp(K[h // group] @ q[h] / np.sqrt(head_dim))
        out[h] = weights / weights.sum() @ V[h // group]
    return out, (K, V)
