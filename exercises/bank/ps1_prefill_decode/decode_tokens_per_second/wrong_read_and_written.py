"""The weights read and written back

Hint: How often does a byte of the weights pass the memory bus for one token? Decoding does not change it.
Caught by: decode-reads-the-weights-once
"""


def decode_tokens_per_second(weight_bytes, bandwidth):
    read_and_write = weight_bytes + weight_bytes
    return bandwidth / read_and_write
