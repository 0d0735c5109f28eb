"""An odd count not expected

Hint: With three values your two halves differ in length. What is to be filled up, and with what?
Caught by: pack-odd-count
"""


def pack_int4(q):
    low = (np.asarray(q) & 0xF).astype(np.uint8)
    return low[::2] | (low[1::2] << 4)
