"""All bytes over all bandwidth"""


def step_seconds(weight_bytes, kv_bytes, bandwidth, n_gpus):
    return (weight_bytes + kv_bytes) / (n_gpus * bandwidth)
