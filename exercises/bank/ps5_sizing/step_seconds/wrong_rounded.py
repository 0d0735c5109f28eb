"""Rounded to whole milliseconds

Hint: 10.86 ms is not 11 ms: nothing is to be rounded.
Caught by: step-on-one-gpu
"""


def step_seconds(weight_bytes, kv_bytes, bandwidth, n_gpus):
    return round((weight_bytes + kv_bytes) / (n_gpus * bandwidth), 3)
