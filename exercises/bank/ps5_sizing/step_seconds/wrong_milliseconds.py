"""The result in milliseconds

Hint: You are off by a factor of a thousand: which unit is asked for?
Caught by: step-on-one-gpu, step-is-in-seconds
"""


def step_seconds(weight_bytes, kv_bytes, bandwidth, n_gpus):
    return 1000 * (weight_bytes + kv_bytes) / (n_gpus * bandwidth)
