"""Parts of a sequence counted

Hint: The text asks for whole sequences.
Caught by: sequences-beside-the-weights, sequences-whole-ones-only
"""


def max_sequences(memory_bytes, weight_bytes, kv_bytes_per_token, context):
    if weight_bytes > memory_bytes:
        raise ValueError("the weights do not fit")
    return (memory_bytes - weight_bytes) / (kv_bytes_per_token * context)
