"""KV caches not read

Hint: Your step is as fast with full caches as with empty ones. What does attention read?
Caught by: step-reads-the-caches-too, step-on-several-gpus
"""


def step_seconds(weight_bytes, kv_bytes, bandwidth, n_gpus):
    return weight_bytes / (n_gpus * bandwidth)
