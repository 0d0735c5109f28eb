"""Byte by byte"""


def pack_int4(q):
    packed = bytearray((len(q) + 1) // 2)
    for i, value in enumerate(q):
        packed[i // 2] |= (int(value) % 16) << (4 * (i % 2))
    return np.frombuffer(bytes(packed), dtype=np.uint8)
