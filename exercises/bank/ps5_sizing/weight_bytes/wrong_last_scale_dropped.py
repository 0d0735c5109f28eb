"""The scale of a last, smaller group dropped

Hint: 10 weights in groups of 4 are three groups, the last one small. How many scales do you count?
Caught by: weights-partial-group
"""


def weight_bytes(n_params, bits, group_size=None):
    groups = n_params // group_size if group_size else 0
    return (n_params * bits + 16 * groups) / 8
