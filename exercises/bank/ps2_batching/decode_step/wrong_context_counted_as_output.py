"""The tokens of the context are counted as if the step had written them.

Hint: How many new tokens does one decode step write for one sequence?
Caught by: step-throughput
"""


def decode_step(batch, context, weight_bytes, kv_bytes_per_token, bandwidth):
    seconds = (weight_bytes + batch * context * kv_bytes_per_token) / bandwidth
    return seconds, batch * max(context, 1) / seconds
