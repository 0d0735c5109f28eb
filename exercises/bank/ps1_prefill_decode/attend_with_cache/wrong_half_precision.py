"""Computed and stored in float16

Hint: The first three digits are right. In which precision did the inputs come, and in which do you compute?
Caught by: attend-by-hand, attend-equals-full-recomputation
"""


def attend_with_cache(q, k, v, cache):
    K = np.concatenate([cache[0], k[:, None]], axis=1).astype(np.float16)
    V = np.concatenate([cache[1], v[:, None]], axis=1).astype(np.float16)
    q = q.astype(np.float16)
    heads, head_dim = q.shape
    group = heads // K.shape[0]
    out = np.zeros_like(q)
    for h in range(heads):
        scores = (K[h // group] @ q[h] / np.sqrt(head_dim)).astype(np.float32)
        weights = np.exp(scores - scores.max())
        out[h] = weights / weights.sum() @ V[h // group]
    return out, (K, V)
