"""All low halves first, then all high ones

Hint: This is how GGUF lays out a block. Here neighbours share a byte.
Caught by: unpack-signs
"""


def unpack_int4(packed, n):
    packed = np.asarray(packed)
    both = np.concatenate([packed & 0xF, packed >> 4])[:n].astype(np.int8)
    return np.where(both > 7, both - 16, both)
