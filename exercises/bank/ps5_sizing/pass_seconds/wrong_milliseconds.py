"""The result in milliseconds

Hint: You are off by a factor of a thousand: which unit is asked for?
Caught by: pass-of-few-rows
"""


def pass_seconds(n_params, rows, weight_bytes, kv_bytes, bandwidth, flops, n_gpus):
    return 1000 * (max(weight_bytes / bandwidth, 2 * n_params * rows / flops) + kv_bytes / bandwidth) / n_gpus
