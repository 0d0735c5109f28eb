"""Rounded to a whole number, as texts like to

Hint: 208.6 is not 209: the text asks for no rounding.
Caught by: decode-reads-the-weights-once, decode-is-not-rounded
"""


def decode_tokens_per_second(weight_bytes, bandwidth):
    return round(bandwidth / weight_bytes)
