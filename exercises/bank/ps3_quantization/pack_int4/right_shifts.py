"""Shifts on arrays"""


def pack_int4(q):
    q = np.asarray(q)
    if len(q) % 2:
        q = np.concatenate([q, np.zeros(1, dtype=q.dtype)])
    nibbles = (q & 0xF).astype(np.uint8)
    return nibbles[0::2] | (nibbles[1::2] << 4)
