"""Values forgotten

Hint: You get half. What is kept of a token beside its keys?
Caught by: kv-bytes-of-known-models
"""


def kv_bytes_per_token(n_layers, n_kv_heads, head_dim, bytes_per_value):
    return n_layers * n_kv_heads * head_dim * bytes_per_value
