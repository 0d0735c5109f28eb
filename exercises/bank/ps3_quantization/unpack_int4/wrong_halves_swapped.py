"""The high half first

Hint: The value at the even index is in the low half. Which one do you take first?
Caught by: unpack-signs
"""


def unpack_int4(packed, n):
    packed = np.asarray(packed)
    both = np.stack([packed >> 4, packed & 0xF], axis=1).reshape(-1)[:n].astype(np.int8)
    return np.where(both > 7, both - 16, both)
