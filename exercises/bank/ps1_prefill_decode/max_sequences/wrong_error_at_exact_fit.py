"""An error where the weights fit exactly

Hint: Weights of 100 bytes do fit into 100 bytes. Look at your comparison.
Caught by: sequences-none-left
"""


def max_sequences(memory_bytes, weight_bytes, kv_bytes_per_token, context):
    if weight_bytes >= memory_bytes:
        raise ValueError("the weights do not fit")
    return (memory_bytes - weight_bytes) // (kv_bytes_per_token * context)
