"""Softmax over the heads instead of over the tokens

Hint: The weights of one head, over all tokens, must add up to 1. Along which axis do you normalise?
Caught by: attend-by-hand, attend-equals-full-recomputation
"""


def attend_with_cache(q, k, v, cache):
    K, V = np.concatenate([cache[0], k[:, None]], axis=1), np.concatenate([cache[1], v[:, None]], axis=1)
    group = q.shape[0] // K.shape[0]
    keys, values = np.repeat(K, group, axis=0), np.repeat(V, group, axis=0)
    scores = np.einsum("hd,htd->ht", q, keys) / np.sqrt(q.shape[1])
    weights = np.exp(scores - scores.max(axis=0))
    weights /= weights.sum(axis=0)
    return np.einsum("ht,htd->hd", weights, values), (K, V)
