"""Bytes kept in 64-bit integers

Hint: Right values, but nothing is saved: look at the dtype of your result.
Caught by: pack-order
"""


def pack_int4(q):
    values = [int(value) & 0xF for value in q] + [0] * (len(q) % 2)
    return np.array([a | (b << 4) for a, b in zip(values[::2], values[1::2])], dtype=np.int64)
