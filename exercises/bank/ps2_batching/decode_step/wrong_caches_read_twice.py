"""Keys and values counted once more

Hint: `kv_bytes_per_token` holds the key and the value of a token. How often is each sequence's cache read in a
step?
Caught by: step-seconds, step-throughput
"""


def decode_step(batch, context, weight_bytes, kv_bytes_per_token, bandwidth):
    seconds = (weight_bytes + 2 * batch * context * kv_bytes_per_token) / bandwidth
    return seconds, batch / seconds
