"""Rounded up

Hint: What happens to the last sequence, which has no room for all its tokens?
Caught by: sequences-whole-ones-only
"""

import math


def max_sequences(memory_bytes, weight_bytes, kv_bytes_per_token, context):
    if weight_bytes > memory_bytes:
        raise ValueError("the weights do not fit")
    return math.ceil((memory_bytes - weight_bytes) / (kv_bytes_per_token * context))
