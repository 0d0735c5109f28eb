"""Only the weights split, each GPU reads all caches

Hint: The caches are split by their KV heads, just as the weights are.
Caught by: step-on-several-gpus
"""


def step_seconds(weight_bytes, kv_bytes, bandwidth, n_gpus):
    return (weight_bytes / n_gpus + kv_bytes) / bandwidth
