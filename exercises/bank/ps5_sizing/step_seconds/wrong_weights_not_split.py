"""Only the caches split, each GPU reads all weights

Hint: No GPU holds all weights, so none can read them all.
Caught by: step-on-several-gpus
"""


def step_seconds(weight_bytes, kv_bytes, bandwidth, n_gpus):
    return (weight_bytes + kv_bytes / n_gpus) / bandwidth
