"""A zero point of 16 bits counted beside each scale

Hint: What you add for each group is twice what the text says. What does a group store?
Caught by: weights-scales-are-counted
"""


def weight_bytes(n_params, bits, group_size=None):
    groups = -(-n_params // group_size) if group_size else 0
    scale, zero_point = 16, 16
    return (n_params * bits + groups * (scale + zero_point)) / 8
