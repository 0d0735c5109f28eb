"""Scales left out

Hint: Your result is the same with and without a group size. What does each group store beside its weights?
Caught by: weights-scales-are-counted, weights-of-other-formats
"""


def weight_bytes(n_params, bits, group_size=None):
    return n_params * bits / 8
