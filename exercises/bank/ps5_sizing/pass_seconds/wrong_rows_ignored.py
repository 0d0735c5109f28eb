"""The rows change nothing

Hint: Try 1 row and 600 rows. Which argument never shows in your result?
Caught by: pass-of-many-rows
"""


def pass_seconds(n_params, rows, weight_bytes, kv_bytes, bandwidth, flops, n_gpus):
    return (weight_bytes + kv_bytes) / (n_gpus * bandwidth)
