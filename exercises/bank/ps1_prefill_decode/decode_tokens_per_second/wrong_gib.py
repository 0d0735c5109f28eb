"""Decimal terabytes against binary gibibytes

Hint: You are off by some per cent. Did you turn one of the two into GiB or TiB and the other not?
Caught by: decode-reads-the-weights-once
"""


def decode_tokens_per_second(weight_bytes, bandwidth):
    return (bandwidth / 1e9) / (weight_bytes / 2**30)
