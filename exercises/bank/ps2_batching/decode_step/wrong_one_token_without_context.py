"""Without context only one sequence is counted

Hint: A sequence that has no context yet gets its token like all others. Try a context of 0 and a batch of 64.
Caught by: step-throughput
"""


def decode_step(batch, context, weight_bytes, kv_bytes_per_token, bandwidth):
    caches = batch * context * kv_bytes_per_token
    seconds = (weight_bytes + caches) / bandwidth
    return seconds, (batch if caches else 1) / seconds
