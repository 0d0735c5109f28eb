"""Each GPU reads all caches

Hint: The caches are split by their KV heads. Which share of them does one of two GPUs read?
Caught by: pass-on-several-gpus
"""


def pass_seconds(n_params, rows, weight_bytes, kv_bytes, bandwidth, flops, n_gpus):
    return max(weight_bytes / bandwidth, 2 * n_params * rows / flops) / n_gpus + kv_bytes / bandwidth
