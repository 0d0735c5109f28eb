"""A causal mask aligned with the first token, so the query sees only that

Hint: The single new query stands at the end of the sequence. A mask made for a square hides all keys but the
first.
Caught by: attend-by-hand, attend-equals-full-recomputation
"""


def attend_with_cache(q, k, v, cache):
    K, V = np.concatenate([cache[0], k[:, None]], axis=1), np.concatenate([cache[1], v[:, None]], axis=1)
    heads, head_dim = q.shape
    group = heads // K.shape[0]
    mask = np.tri(1, K.shape[1], dtype=bool)[0]
    out = np.zeros_like(q)
    for h in range(heads):
        scores = np.where(mask, K[h // group] @ q[h] / np.sqrt(head_dim), -np.inf)
        weights = np.exp(scores - scores.max())
        out[h] = weights / weights.sum() @ V[h // group]
    return out, (K, V)
