"""A single scale for all weights

Hint: Your result hardly grows when groups get smaller. How many groups are there?
Caught by: weights-scales-are-counted
"""


def weight_bytes(n_params, bits, group_size=None):
    scale_bits = 16 if group_size else 0
    return (n_params * bits + scale_bits) / 8
