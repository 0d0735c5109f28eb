"""GB and GiB are mixed: the bandwidth is taken as 2**40 bytes for each 10**12.

Hint: The numbers are off by the same factor every time, 1.0995. All sizes come in bytes: no conversion.
Caught by: step-seconds, step-throughput
"""


def decode_step(batch, context, weight_bytes, kv_bytes_per_token, bandwidth):
    seconds = (weight_bytes + batch * context * kv_bytes_per_token) / (bandwidth * 2**40 / 10**12)
    return seconds, batch / seconds
