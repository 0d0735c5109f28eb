"""All bytes read by each GPU

Hint: Two GPUs are no faster than one in your version. Which share of the bytes does one of them read?
Caught by: step-on-several-gpus
"""


def step_seconds(weight_bytes, kv_bytes, bandwidth, n_gpus):
    return (weight_bytes + kv_bytes) / bandwidth
