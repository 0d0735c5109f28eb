"""Rounded to the nearest whole number

Hint: 59.6 sequences: the sixtieth has room for 60 % of its tokens. Does it fit?
Caught by: sequences-whole-ones-only
"""


def max_sequences(memory_bytes, weight_bytes, kv_bytes_per_token, context):
    if weight_bytes > memory_bytes:
        raise ValueError("the weights do not fit")
    return round((memory_bytes - weight_bytes) / (kv_bytes_per_token * context))
