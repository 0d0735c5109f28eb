"""GPUs that wait for one another

Hint: More GPUs make your step longer. They all read at the same time.
Caught by: step-on-several-gpus
"""


def step_seconds(weight_bytes, kv_bytes, bandwidth, n_gpus):
    return n_gpus * (weight_bytes + kv_bytes) / bandwidth
