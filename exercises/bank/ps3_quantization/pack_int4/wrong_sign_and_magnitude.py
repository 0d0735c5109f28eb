"""A sign bit and the magnitude instead of two's complement

Hint: -1 shall be 1111. Which bits does it have in your version?
Caught by: pack-order
"""


def pack_int4(q):
    q = np.append(q, 0) if len(q) % 2 else np.asarray(q)
    low = np.where(q < 0, 8 | (-q.astype(int) & 7), q).astype(np.uint8)
    return low[::2] | (low[1::2] << 4)
