"""Weights and caches apart, then added"""


def step_seconds(weight_bytes, kv_bytes, bandwidth, n_gpus):
    weights = weight_bytes / n_gpus / bandwidth
    caches = kv_bytes / n_gpus / bandwidth
    return weights + caches
