"""The result cut to a whole number of bytes

Hint: A token of a small cache of 2-bit values may take two and a half bytes.
Caught by: kv-bytes-of-other-precisions
"""


def kv_bytes_per_token(n_layers, n_kv_heads, head_dim, bytes_per_value):
    return int(2 * n_layers * n_kv_heads * head_dim * bytes_per_value)
