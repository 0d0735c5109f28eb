"""Half a byte cut down to none

Hint: What does your function make of 0.5 bytes per value?
Caught by: kv-bytes-of-other-precisions
"""


def kv_bytes_per_token(n_layers, n_kv_heads, head_dim, bytes_per_value):
    return 2 * n_layers * n_kv_heads * head_dim * int(bytes_per_value)
