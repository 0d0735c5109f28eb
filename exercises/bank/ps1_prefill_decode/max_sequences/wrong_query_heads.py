"""Four times the cache, as if query heads were stored

Hint: You get about a quarter. Does the size of a token's cache need another factor?
Caught by: sequences-beside-the-weights
"""


def max_sequences(memory_bytes, weight_bytes, kv_bytes_per_token, context):
    if weight_bytes > memory_bytes:
        raise ValueError("the weights do not fit")
    return (memory_bytes - weight_bytes) // (4 * kv_bytes_per_token * context)
