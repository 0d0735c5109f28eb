"""With math.floor"""

import math


def max_sequences(memory_bytes, weight_bytes, kv_bytes_per_token, context):
    if memory_bytes < weight_bytes:
        raise ValueError("the weights alone do not fit")
    return math.floor((memory_bytes - weight_bytes) / (kv_bytes_per_token * context))
