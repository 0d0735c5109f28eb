"""A scale of as many bits as a weight

Hint: With 4-bit weights your scales are too small. How many bits does the text give a scale?
Caught by: weights-scales-are-counted
"""


def weight_bytes(n_params, bits, group_size=None):
    groups = -(-n_params // group_size) if group_size else 0
    return (n_params + groups) * bits / 8
