"""The even index in the high half

Hint: The first value of each byte belongs into bits 0 to 3. Into which do you shift it?
Caught by: pack-order
"""


def pack_int4(q):
    q = np.append(q, 0) if len(q) % 2 else np.asarray(q)
    low = (q & 0xF).astype(np.uint8)
    return (low[::2] << 4) | low[1::2]
