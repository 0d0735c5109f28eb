"""The bytes per token doubled for key and value

Hint: `kv_bytes_per_token` holds key and value already: part 4 counted both. What is multiplied by 2 here?
Caught by: sequences-beside-the-weights, sequences-whole-ones-only
"""


def max_sequences(memory_bytes, weight_bytes, kv_bytes_per_token, context):
    if weight_bytes > memory_bytes:
        raise ValueError("the weights do not fit")
    return int((memory_bytes - weight_bytes) // (2 * kv_bytes_per_token * context))
