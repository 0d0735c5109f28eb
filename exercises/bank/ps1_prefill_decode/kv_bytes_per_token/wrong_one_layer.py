"""One layer only

Hint: Each layer has keys and values of its own. Which argument is missing in your product?
Caught by: kv-bytes-use-every-argument
"""


def kv_bytes_per_token(n_layers, n_kv_heads, head_dim, bytes_per_value):
    return 2 * n_kv_heads * head_dim * bytes_per_value
