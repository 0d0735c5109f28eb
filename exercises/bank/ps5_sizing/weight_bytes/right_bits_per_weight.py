"""Bits per weight first, scales in proportion"""


def weight_bytes(n_params, bits, group_size=None):
    per_weight = bits
    if group_size:
        per_weight += 16 / group_size
    return n_params * per_weight / 8
