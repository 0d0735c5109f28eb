"""A loss for each further GPU assumed

Hint: Communication is left out here: two GPUs are exactly twice as fast.
Caught by: step-on-several-gpus
"""


def step_seconds(weight_bytes, kv_bytes, bandwidth, n_gpus):
    return (weight_bytes + kv_bytes) / (bandwidth * n_gpus**0.9)
