"""An error where no sequence fits

Hint: The weights fit, but no sequence does: which number says that? It is no error.
Caught by: sequences-none-left
"""


def max_sequences(memory_bytes, weight_bytes, kv_bytes_per_token, context):
    fitting = (memory_bytes - weight_bytes) // (kv_bytes_per_token * context)
    if fitting < 1:
        raise ValueError("nothing fits")
    return fitting
