"""Query heads counted instead of KV heads

Hint: You get four times too much for Llama 3 8B. Which kind of head is stored, and which does the argument
count?
Caught by: kv-bytes-of-known-models
"""


def kv_bytes_per_token(n_layers, n_kv_heads, head_dim, bytes_per_value):
    query_heads = 4 * n_kv_heads
    return 2 * n_layers * query_heads * head_dim * bytes_per_value
