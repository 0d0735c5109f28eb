"""Weights and caches read at the same time

Hint: Both come through the same memory, one after the other. Is that the larger of the two or their sum?
Caught by: step-reads-the-caches-too
"""


def step_seconds(weight_bytes, kv_bytes, bandwidth, n_gpus):
    return max(weight_bytes, kv_bytes) / (n_gpus * bandwidth)
