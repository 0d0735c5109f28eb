"""Reading the weights and the arithmetic added

Hint: One row takes longer in your version than the weights alone. Reading and multiplying overlap: which of the two counts?
Caught by: pass-of-few-rows, pass-of-many-rows
"""


def pass_seconds(n_params, rows, weight_bytes, kv_bytes, bandwidth, flops, n_gpus):
    return ((weight_bytes + kv_bytes) / bandwidth + 2 * n_params * rows / flops) / n_gpus
