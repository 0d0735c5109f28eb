"""The first half of the values in the low halves, the second half in the high ones

Hint: This is how GGUF lays out a block. Here neighbours share a byte.
Caught by: pack-order
"""


def pack_int4(q):
    q = np.append(q, 0) if len(q) % 2 else np.asarray(q)
    low = (q & 0xF).astype(np.uint8)
    half = len(q) // 2
    return low[:half] | (low[half:] << 4)
