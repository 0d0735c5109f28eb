"""The time is given in milliseconds.

Hint: Bytes divided by bytes per second are seconds. Nothing needs to be converted.
Caught by: step-seconds
"""


def decode_step(batch, context, weight_bytes, kv_bytes_per_token, bandwidth):
    seconds = (weight_bytes + batch * context * kv_bytes_per_token) / bandwidth
    return 1000 * seconds, batch / seconds
