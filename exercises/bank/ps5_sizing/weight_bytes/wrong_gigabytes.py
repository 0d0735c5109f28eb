"""The result in GB

Hint: The text asks for bytes; a factor of 10⁹ is missing.
Caught by: weights-without-scales
"""


def weight_bytes(n_params, bits, group_size=None):
    per_weight = bits if group_size is None else bits + 16 / group_size
    return n_params * per_weight / 8 / 1e9
