"""Bits instead of bytes

Hint: You are off by a factor of 8. The last argument is in bytes already.
Caught by: kv-bytes-of-known-models
"""


def kv_bytes_per_token(n_layers, n_kv_heads, head_dim, bytes_per_value):
    return 2 * n_layers * n_kv_heads * head_dim * bytes_per_value * 8
