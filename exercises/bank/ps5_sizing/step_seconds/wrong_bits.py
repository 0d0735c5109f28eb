"""Bandwidth taken for bits per second

Hint: You are off by a factor of 8. Everything is in bytes.
Caught by: step-on-one-gpu
"""


def step_seconds(weight_bytes, kv_bytes, bandwidth, n_gpus):
    return 8 * (weight_bytes + kv_bytes) / (n_gpus * bandwidth)
