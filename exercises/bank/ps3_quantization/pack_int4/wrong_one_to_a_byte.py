"""One value to a byte

Hint: Four values shall take two bytes. How many do you return?
Caught by: pack-order, pack-odd-count
"""


def pack_int4(q):
    return (np.asarray(q) & 0xF).astype(np.uint8)
