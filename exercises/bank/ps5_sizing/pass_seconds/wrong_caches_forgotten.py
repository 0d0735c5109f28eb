"""KV caches not read

Hint: Your pass is as fast with full caches as with empty ones. What does attention read?
Caught by: pass-adds-the-caches
"""


def pass_seconds(n_params, rows, weight_bytes, kv_bytes, bandwidth, flops, n_gpus):
    return max(weight_bytes / bandwidth, 2 * n_params * rows / flops) / n_gpus
