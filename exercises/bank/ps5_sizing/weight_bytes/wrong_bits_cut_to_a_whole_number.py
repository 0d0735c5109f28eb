"""The bits of a weight cut to a whole number

Hint: Formats with 4.5 bits a weight exist. What does your function make of the half bit?
Caught by: weights-without-scales
"""


def weight_bytes(n_params, bits, group_size=None):
    total_bits = n_params * int(bits)
    if group_size is not None:
        total_bits += 16 * -(-n_params // group_size)
    return total_bits / 8
