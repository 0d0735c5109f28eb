"""FLOPs counted from the bytes of the weights

Hint: With weights in few bits your arithmetic gets cheaper. Does quantization leave out parameters?
Caught by: pass-of-many-rows
"""


def pass_seconds(n_params, rows, weight_bytes, kv_bytes, bandwidth, flops, n_gpus):
    return (max(weight_bytes / bandwidth, weight_bytes * rows / flops) + kv_bytes / bandwidth) / n_gpus
