"""Seconds per token instead of tokens per second

Hint: More bandwidth must give a larger number here. Does it?
Caught by: decode-reads-the-weights-once
"""


def decode_tokens_per_second(weight_bytes, bandwidth):
    return weight_bytes / bandwidth
