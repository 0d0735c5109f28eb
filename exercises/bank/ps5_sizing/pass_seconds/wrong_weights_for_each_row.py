"""The weights read once for each row

Hint: 24 rows take 24 times as long as one in your version. How many times does a pass read the weights?
Caught by: pass-of-few-rows, pass-of-many-rows
"""


def pass_seconds(n_params, rows, weight_bytes, kv_bytes, bandwidth, flops, n_gpus):
    return (rows * weight_bytes + kv_bytes) / (n_gpus * bandwidth)
