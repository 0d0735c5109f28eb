"""Signs by shifting to the left and back"""


def unpack_int4(packed, n):
    packed = np.asarray(packed, dtype=np.uint8)
    out = np.empty(2 * len(packed), dtype=np.int8)
    out[0::2] = (packed << 4).view(np.int8) >> 4
    out[1::2] = packed.view(np.int8) >> 4
    return out[:n]
