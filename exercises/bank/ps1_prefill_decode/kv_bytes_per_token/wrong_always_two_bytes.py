"""Two bytes a number, whatever is asked

Hint: Try a cache of 1-byte values: your result does not change.
Caught by: kv-bytes-of-other-precisions
"""


def kv_bytes_per_token(n_layers, n_kv_heads, head_dim, bytes_per_value):
    return 2 * n_layers * n_kv_heads * head_dim * 2
