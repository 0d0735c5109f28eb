"""The high halves forgotten

Hint: You give back one value for each byte.
Caught by: unpack-signs
"""


def unpack_int4(packed, n):
    low = (np.asarray(packed) & 0xF).astype(np.int8)[:n]
    return np.where(low > 7, low - 16, low)
