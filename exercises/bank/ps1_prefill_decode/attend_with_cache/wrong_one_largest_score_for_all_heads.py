"""The largest score of all heads subtracted from each head's scores

Hint: Where one head has scores in the thousands and another has scores of 0, what is left of the second one's
exponentials?
Caught by: attend-large-scores
"""


def attend_with_cache(q, k, v, cache):
    K, V = np.concatenate([cache[0], k[:, None]], axis=1), np.concatenate([cache[1], v[:, None]], axis=1)
    heads, head_dim = q.shape
    group = heads // K.shape[0]
    K, V = np.repeat(K, group, axis=0), np.repeat(V, group, axis=0)
    scores = np.einsum("hd,htd->ht", q, K) / np.sqrt(head_dim)
    with np.errstate(invalid="ignore"):
        weights = np.exp(scores - scores.max())
        weights = weights / weights.sum(axis=1, keepdims=True)
    return np.einsum("ht,htd->hd", weights, V), (K[::group], V[::group])
