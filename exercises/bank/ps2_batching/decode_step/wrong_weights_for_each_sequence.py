"""The weights are read once for every sequence.

Hint: Compare a batch of 1 with a batch of 64 at context 0: does the step take longer? It should not, the weights are
shared.
Caught by: step-seconds
"""


def decode_step(batch, context, weight_bytes, kv_bytes_per_token, bandwidth):
    seconds = batch * (weight_bytes + context * kv_bytes_per_token) / bandwidth
    return seconds, batch / seconds
