"""One pass over the tokens with a running maximum and sum, as FlashAttention does"""


def attend_with_cache(q, k, v, cache):
    K, V = np.hstack([cache[0], k[:, None]]), np.hstack([cache[1], v[:, None]])
    heads, head_dim = q.shape
    group = heads // K.shape[0]
    out = np.zeros_like(q)
    for h in range(heads):
        largest, total, mixed = -np.inf, 0.0, np.zeros(head_dim)
        for key, value in zip(K[h // group], V[h // group]):
            score = key @ q[h] / np.sqrt(head_dim)
            new = max(largest, score)
            shrink, weight = np.exp(largest - new), np.exp(score - new)
            total, mixed, largest = total * shrink + weight, mixed * shrink + weight * value, new
        out[h] = mixed / total
    return out, (K, V)
