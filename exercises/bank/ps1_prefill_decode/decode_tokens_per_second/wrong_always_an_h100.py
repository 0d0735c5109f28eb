"""The bandwidth of one GPU written into the function

Hint: One of the arguments never shows in your result. Try the function with another GPU.
Caught by: decode-on-other-hardware
"""


def decode_tokens_per_second(weight_bytes, bandwidth):
    return 3.35e12 / weight_bytes
