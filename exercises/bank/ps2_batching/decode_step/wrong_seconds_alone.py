"""Only the seconds are returned, not the tokens per second.

Hint: The contract asks for two numbers. A `return` with a comma gives both.
Caught by: step-seconds, step-throughput
"""


def decode_step(batch, context, weight_bytes, kv_bytes_per_token, bandwidth):
    return (weight_bytes + batch * context * kv_bytes_per_token) / bandwidth
