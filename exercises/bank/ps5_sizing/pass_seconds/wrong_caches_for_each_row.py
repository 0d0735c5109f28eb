"""The caches read once for each row

Hint: Your pass reads the caches as many times as it has rows. The text says how many times.
Caught by: pass-adds-the-caches
"""


def pass_seconds(n_params, rows, weight_bytes, kv_bytes, bandwidth, flops, n_gpus):
    return (max(weight_bytes / bandwidth, 2 * n_params * rows / flops) + rows * kv_bytes / bandwidth) / n_gpus
