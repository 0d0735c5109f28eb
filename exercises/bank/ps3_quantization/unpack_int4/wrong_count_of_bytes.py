"""n taken for a number of bytes

Hint: n counts integers, and two of them are in a byte.
Caught by: unpack-signs
"""


def unpack_int4(packed, n):
    packed = np.asarray(packed)[:n]
    both = np.stack([packed & 0xF, packed >> 4], axis=1).reshape(-1).astype(np.int8)
    return np.where(both > 7, both - 16, both)
