"""A scale of 32 bits

Hint: What you add for the scales is twice too much. How many bits does one have?
Caught by: weights-scales-are-counted
"""


def weight_bytes(n_params, bits, group_size=None):
    groups = -(-n_params // group_size) if group_size else 0
    return (n_params * bits + 32 * groups) / 8
