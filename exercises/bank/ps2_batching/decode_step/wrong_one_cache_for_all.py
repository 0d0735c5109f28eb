"""The sequences share one KV cache.

Hint: Every sequence has a text, and so a KV cache, of its own. How many caches does a step of 10 sequences read?
Caught by: step-seconds
"""


def decode_step(batch, context, weight_bytes, kv_bytes_per_token, bandwidth):
    seconds = (weight_bytes + context * kv_bytes_per_token) / bandwidth
    return seconds, batch / seconds
