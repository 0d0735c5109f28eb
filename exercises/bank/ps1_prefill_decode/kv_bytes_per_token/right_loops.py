"""Counted layer by layer"""


def kv_bytes_per_token(n_layers, n_kv_heads, head_dim, bytes_per_value):
    total = 0
    for _layer in range(n_layers):
        for _head in range(n_kv_heads):
            total += head_dim * bytes_per_value  # the key
            total += head_dim * bytes_per_value  # the value
    return total
