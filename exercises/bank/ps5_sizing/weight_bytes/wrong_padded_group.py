"""The last group filled up with weights that do not exist

Hint: A last, smaller group needs a whole scale at most, but no more weights than there are.
Caught by: weights-partial-group
"""


def weight_bytes(n_params, bits, group_size=None):
    if group_size is None:
        return n_params * bits / 8
    groups = -(-n_params // group_size)
    return groups * (group_size * bits + 16) / 8
