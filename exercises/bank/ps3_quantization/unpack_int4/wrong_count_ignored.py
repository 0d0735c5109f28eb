"""The value that fills up an odd count given back

Hint: How many values were asked for, and how many do you return?
Caught by: unpack-signs
"""


def unpack_int4(packed, n):
    packed = np.asarray(packed)
    both = np.stack([packed & 0xF, packed >> 4], axis=1).reshape(-1).astype(np.int8)
    return np.where(both > 7, both - 16, both)
