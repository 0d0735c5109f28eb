"""The group size taken for the number of groups

Hint: Larger groups must cost less, not more: a group size of 128 does not mean 128 groups.
Caught by: weights-scales-are-counted
"""


def weight_bytes(n_params, bits, group_size=None):
    return (n_params * bits + 16 * (group_size or 0)) / 8
