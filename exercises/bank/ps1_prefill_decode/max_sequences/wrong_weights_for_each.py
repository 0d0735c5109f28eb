"""A copy of the weights for each sequence

Hint: All sequences use the same weights. How often do they have to be in memory?
Caught by: sequences-beside-the-weights
"""


def max_sequences(memory_bytes, weight_bytes, kv_bytes_per_token, context):
    if weight_bytes > memory_bytes:
        raise ValueError("the weights do not fit")
    return memory_bytes // (weight_bytes + kv_bytes_per_token * context)
