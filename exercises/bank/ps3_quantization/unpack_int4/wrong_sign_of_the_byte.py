"""The sign taken from the whole byte, so only the high half gets one

Hint: A shift of a signed byte keeps the sign of its high half. Who gives the low half its own?
Caught by: unpack-signs
"""


def unpack_int4(packed, n):
    signed = np.asarray(packed, dtype=np.uint8).view(np.int8)
    return np.stack([signed & 0xF, signed >> 4], axis=1).reshape(-1)[:n]
