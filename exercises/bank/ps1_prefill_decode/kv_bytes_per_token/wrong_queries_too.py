"""Queries kept as well

Hint: A query is used once, in its own step. Does anybody need it later?
Caught by: kv-bytes-of-known-models
"""


def kv_bytes_per_token(n_layers, n_kv_heads, head_dim, bytes_per_value):
    return 3 * n_layers * n_kv_heads * head_dim * bytes_per_value
