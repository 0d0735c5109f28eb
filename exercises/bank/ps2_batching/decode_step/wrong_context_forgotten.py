"""Only the newest token of each sequence is read from the cache.

Hint: To write one token, a sequence looks back at all its tokens: the cache of the whole context is read.
Caught by: step-seconds
"""


def decode_step(batch, context, weight_bytes, kv_bytes_per_token, bandwidth):
    seconds = (weight_bytes + batch * kv_bytes_per_token) / bandwidth
    return seconds, batch / seconds
