"""One FLOP for each parameter and row

Hint: Each parameter is multiplied and then added. How many FLOPs is that for a row?
Caught by: pass-of-many-rows
"""


def pass_seconds(n_params, rows, weight_bytes, kv_bytes, bandwidth, flops, n_gpus):
    return (max(weight_bytes / bandwidth, n_params * rows / flops) + kv_bytes / bandwidth) / n_gpus
