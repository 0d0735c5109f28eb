"""Divided without remainder

Hint: A step mostly takes less than a second. `//` makes 0 of that.
Caught by: step-is-in-seconds
"""


def step_seconds(weight_bytes, kv_bytes, bandwidth, n_gpus):
    return (weight_bytes + kv_bytes) // (n_gpus * bandwidth)
