"""Memory taken for binary gibibytes

Hint: You get some per cent too many. All arguments are in bytes: is there anything to convert?
Caught by: sequences-beside-the-weights
"""


def max_sequences(memory_bytes, weight_bytes, kv_bytes_per_token, context):
    if weight_bytes > memory_bytes:
        raise ValueError("the weights do not fit")
    memory = memory_bytes / 1e9 * 2**30
    return int((memory - weight_bytes) // (kv_bytes_per_token * context))
