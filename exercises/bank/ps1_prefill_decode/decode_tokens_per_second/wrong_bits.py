"""Bandwidth taken for bits per second

Hint: You are off by a factor of 8. Both arguments are in bytes.
Caught by: decode-reads-the-weights-once
"""


def decode_tokens_per_second(weight_bytes, bandwidth):
    return bandwidth / (weight_bytes * 8)
