"""One roofline for the whole pass

Hint: In your version the arithmetic of the linear layers hides the reading of the caches. Does attention run at the same time?
Caught by: pass-adds-the-caches
"""


def pass_seconds(n_params, rows, weight_bytes, kv_bytes, bandwidth, flops, n_gpus):
    reading = (weight_bytes + kv_bytes) / bandwidth
    return max(reading, 2 * n_params * rows / flops) / n_gpus
