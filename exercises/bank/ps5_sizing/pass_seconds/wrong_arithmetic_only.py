"""Always compute-bound

Hint: With one row you say that the pass takes next to no time. What does it have to read, however few rows there are?
Caught by: pass-of-few-rows
"""


def pass_seconds(n_params, rows, weight_bytes, kv_bytes, bandwidth, flops, n_gpus):
    return (2 * n_params * rows / flops + kv_bytes / bandwidth) / n_gpus
