"""The size of a projection matrix instead of a vector

Hint: A key is a vector of `head_dim` numbers. Where does your square come from?
Caught by: kv-bytes-of-known-models
"""


def kv_bytes_per_token(n_layers, n_kv_heads, head_dim, bytes_per_value):
    return 2 * n_layers * n_kv_heads * head_dim**2 * bytes_per_value
