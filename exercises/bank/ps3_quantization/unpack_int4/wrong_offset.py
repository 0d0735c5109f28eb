"""8 subtracted instead of two's complement

Hint: 0000 shall be 0. What is it in your version?
Caught by: unpack-signs
"""


def unpack_int4(packed, n):
    packed = np.asarray(packed)
    both = np.stack([packed & 0xF, packed >> 4], axis=1).reshape(-1)[:n]
    return both.astype(np.int8) - 8
