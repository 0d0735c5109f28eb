"""NumPy, KV heads repeated, the new cache as a list"""


def attend_with_cache(q, k, v, cache):
    K = np.concatenate((cache[0], np.expand_dims(k, 1)), axis=1)
    V = np.concatenate((cache[1], np.expand_dims(v, 1)), axis=1)
    times = len(q) // len(k)
    keys, values = np.repeat(K, times, axis=0), np.repeat(V, times, axis=0)
    scores = (keys @ q[:, :, None])[:, :, 0] / np.sqrt(q.shape[-1])
    scores = scores - scores.max(axis=1, keepdims=True)
    weights = np.exp(scores) / np.exp(scores).sum(axis=1, keepdims=True)
    return (weights[:, None] @ values)[:, 0], [K, V]
