"""One GPU's share of everything"""


def pass_seconds(n_params, rows, weight_bytes, kv_bytes, bandwidth, flops, n_gpus):
    n_params, weight_bytes, kv_bytes = n_params / n_gpus, weight_bytes / n_gpus, kv_bytes / n_gpus
    return max(weight_bytes / bandwidth, 2 * n_params * rows / flops) + kv_bytes / bandwidth
