"""A step reads the weights only.

Hint: The worked example says 0.0085 s; the weights alone are 0.0080 s. What else is read?
Caught by: step-seconds
"""


def decode_step(batch, context, weight_bytes, kv_bytes_per_token, bandwidth):
    seconds = weight_bytes / bandwidth
    return seconds, batch / seconds
