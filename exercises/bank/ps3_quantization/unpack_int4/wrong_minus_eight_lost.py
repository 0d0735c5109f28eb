"""8 taken for a positive number

Hint: -8 comes back as 8. Where does your range of positive numbers end?
Caught by: unpack-signs
"""


def unpack_int4(packed, n):
    packed = np.asarray(packed)
    both = np.stack([packed & 0xF, packed >> 4], axis=1).reshape(-1)[:n].astype(np.int8)
    return np.where(both > 8, both - 16, both)
