"""An odd count filled up with its last value

Hint: Only a 0 may stand in the half that nobody uses.
Caught by: pack-odd-count
"""


def pack_int4(q):
    q = np.append(q, q[-1]) if len(q) % 2 else np.asarray(q)
    low = (q & 0xF).astype(np.uint8)
    return low[::2] | (low[1::2] << 4)
