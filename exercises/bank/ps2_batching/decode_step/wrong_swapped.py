"""The two results are returned in the wrong order.

Hint: The contract says (seconds, tokens per second). Which of your two numbers is the smaller one?
Caught by: step-seconds, step-throughput
"""


def decode_step(batch, context, weight_bytes, kv_bytes_per_token, bandwidth):
    seconds = (weight_bytes + batch * context * kv_bytes_per_token) / bandwidth
    return batch / seconds, seconds
