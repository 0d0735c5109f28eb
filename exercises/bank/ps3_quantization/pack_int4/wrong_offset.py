"""8 added instead of two's complement

Hint: -8 shall be 1000 and 0 shall be 0000. What is 0 in your version?
Caught by: pack-order
"""


def pack_int4(q):
    q = np.append(q, -8) if len(q) % 2 else np.asarray(q)
    low = (q + 8).astype(np.uint8)
    return low[::2] | (low[1::2] << 4)
