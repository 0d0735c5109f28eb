"""Whole tokens first, then whole sequences; an error of a class of its own"""


class TooLargeError(ValueError):
    pass


def max_sequences(memory_bytes, weight_bytes, kv_bytes_per_token, context):
    left = memory_bytes - weight_bytes
    if left < 0:
        raise TooLargeError("no room for the weights")
    tokens = left // kv_bytes_per_token
    return tokens // context
