"""The last of an odd count dropped

Hint: Three values need two bytes. How many do you return?
Caught by: pack-odd-count
"""


def pack_int4(q):
    q = np.asarray(q)[: len(q) // 2 * 2]
    low = (q & 0xF).astype(np.uint8)
    return low[::2] | (low[1::2] << 4)
