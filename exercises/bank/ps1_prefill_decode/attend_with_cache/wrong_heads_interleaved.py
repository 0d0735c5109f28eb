"""KV heads dealt out in turn: query head h to KV head h modulo kv_heads

Hint: With 4 query heads and 2 KV heads, heads 0 and 1 belong together. Which KV head does your head 1 use?
Caught by: attend-grouped-query-heads, attend-equals-full-recomputation
"""


def attend_with_cache(q, k, v, cache):
    K, V = np.concatenate([cache[0], k[:, None]], axis=1), np.concatenate([cache[1], v[:, None]], axis=1)
    heads, head_dim = q.shape
    out = np.zeros_like(q)
    for h in range(heads):
        kv = h % K.shape[0]
        scores = K[kv] @ q[h] / np.sqrt(head_dim)
        weights = np.exp(scores - scores.max())
        out[h] = weights / weights.sum() @ V[kv]
    return out, (K, V)
