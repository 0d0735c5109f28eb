"""Steps per second instead of seconds per step

Hint: More bytes must give a larger number. Do they?
Caught by: step-on-one-gpu, step-is-in-seconds
"""


def step_seconds(weight_bytes, kv_bytes, bandwidth, n_gpus):
    return n_gpus * bandwidth / (weight_bytes + kv_bytes)
