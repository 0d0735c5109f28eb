"""Negative numbers come back as 8 to 15

Hint: 1111 stands for -1, not for 15. What has to happen to values above 7?
Caught by: unpack-signs
"""


def unpack_int4(packed, n):
    packed = np.asarray(packed)
    return np.stack([packed & 0xF, packed >> 4], axis=1).reshape(-1)[:n].astype(np.int8)
