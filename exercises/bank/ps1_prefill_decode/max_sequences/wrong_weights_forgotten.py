"""All memory given to the caches

Hint: Something else lives in the same memory, before the first sequence comes.
Caught by: sequences-beside-the-weights
"""


def max_sequences(memory_bytes, weight_bytes, kv_bytes_per_token, context):
    if weight_bytes > memory_bytes:
        raise ValueError("the weights do not fit")
    return memory_bytes // (kv_bytes_per_token * context)
