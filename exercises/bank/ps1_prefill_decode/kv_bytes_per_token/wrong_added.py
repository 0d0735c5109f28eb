"""Layers added instead of multiplied

Hint: Each of the layers keeps the same amount. Is that a sum or a product?
Caught by: kv-bytes-use-every-argument
"""


def kv_bytes_per_token(n_layers, n_kv_heads, head_dim, bytes_per_value):
    return n_layers + 2 * n_kv_heads * head_dim * bytes_per_value
