"""The tokens per second cut to a whole number

Hint: A rate need not be whole, and the text asks for no rounding.
Caught by: step-throughput
"""


def decode_step(batch, context, weight_bytes, kv_bytes_per_token, bandwidth):
    seconds = (weight_bytes + batch * context * kv_bytes_per_token) / bandwidth
    return seconds, batch // seconds
