"""Weights and caches are read at the same time, so only the larger one counts.

Hint: Both come through the same memory bus: their times add up.
Caught by: step-seconds
"""


def decode_step(batch, context, weight_bytes, kv_bytes_per_token, bandwidth):
    seconds = max(weight_bytes, batch * context * kv_bytes_per_token) / bandwidth
    return seconds, batch / seconds
