"""A batch of n is n times as fast as one user, whatever the caches cost.

Hint: Work the throughput out of the seconds of this very step: the caches make it longer.
Caught by: step-throughput
"""


def decode_step(batch, context, weight_bytes, kv_bytes_per_token, bandwidth):
    seconds = (weight_bytes + batch * context * kv_bytes_per_token) / bandwidth
    alone = (weight_bytes + context * kv_bytes_per_token) / bandwidth
    return seconds, batch / alone
