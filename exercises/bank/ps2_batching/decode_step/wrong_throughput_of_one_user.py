"""Tokens per second are counted for one user, throughput divided by the batch.

Hint: A step writes one token for each sequence of the batch, not one in all.
Caught by: step-throughput
"""


def decode_step(batch, context, weight_bytes, kv_bytes_per_token, bandwidth):
    seconds = (weight_bytes + batch * context * kv_bytes_per_token) / bandwidth
    return seconds, 1 / seconds
