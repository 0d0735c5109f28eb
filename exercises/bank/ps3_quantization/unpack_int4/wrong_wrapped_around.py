"""Subtracted in uint8, which has no negative numbers

Hint: -1 comes back as 255. In which type do you subtract?
Caught by: unpack-signs
"""


def unpack_int4(packed, n):
    packed = np.asarray(packed, dtype=np.uint8)
    both = np.stack([packed & 0xF, packed >> 4], axis=1).reshape(-1)[:n]
    return np.where(both > 7, both - np.uint8(16), both)
