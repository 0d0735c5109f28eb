"""The result cut to whole bytes

Hint: Ten weights of 3 bits are 30 bits. A result is never rounded unless the text says so.
Caught by: weights-without-scales
"""


def weight_bytes(n_params, bits, group_size=None):
    total_bits = n_params * bits
    if group_size is not None:
        return (total_bits + 16 * -(-n_params // group_size)) / 8
    return total_bits // 8
