"""Tokens counted, not sequences

Hint: A sequence has `context` tokens. How many bytes does it take?
Caught by: sequences-beside-the-weights
"""


def max_sequences(memory_bytes, weight_bytes, kv_bytes_per_token, context):
    if weight_bytes > memory_bytes:
        raise ValueError("the weights do not fit")
    return (memory_bytes - weight_bytes) // kv_bytes_per_token
