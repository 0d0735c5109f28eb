"""A scale for each weight

Hint: One scale serves a whole group. How many groups are there?
Caught by: weights-scales-are-counted
"""


def weight_bytes(n_params, bits, group_size=None):
    scale_bits = 16 if group_size else 0
    return n_params * (bits + scale_bits) / 8
