"""The longer of the two by an if"""


def pass_seconds(n_params, rows, weight_bytes, kv_bytes, bandwidth, flops, n_gpus):
    linear = weight_bytes / (n_gpus * bandwidth)
    arithmetic = 2 * rows * n_params / (n_gpus * flops)
    if arithmetic > linear:
        linear = arithmetic
    return linear + kv_bytes / (n_gpus * bandwidth)
