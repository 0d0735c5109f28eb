"""Each GPU does all of the arithmetic

Hint: With two GPUs each holds half of every matrix. Which share of the arithmetic does it do?
Caught by: pass-on-several-gpus
"""


def pass_seconds(n_params, rows, weight_bytes, kv_bytes, bandwidth, flops, n_gpus):
    return max(weight_bytes / (n_gpus * bandwidth), 2 * n_params * rows / flops) + kv_bytes / (n_gpus * bandwidth)
