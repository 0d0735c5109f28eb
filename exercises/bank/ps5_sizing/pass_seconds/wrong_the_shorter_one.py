"""The shorter of the two

Hint: The linear layers are done when both the reading and the arithmetic are done. Which of the two ends last?
Caught by: pass-of-few-rows, pass-of-many-rows
"""


def pass_seconds(n_params, rows, weight_bytes, kv_bytes, bandwidth, flops, n_gpus):
    return (min(weight_bytes / bandwidth, 2 * n_params * rows / flops) + kv_bytes / bandwidth) / n_gpus
