"""The sign bits of a negative number spill into the other half

Hint: -2 is 11111110 in eight bits. Which four of them may go into the byte?
Caught by: pack-order
"""


def pack_int4(q):
    q = np.append(q, 0) if len(q) % 2 else np.asarray(q)
    low = q.astype(np.uint8)
    return low[::2] | (low[1::2] << 4)
