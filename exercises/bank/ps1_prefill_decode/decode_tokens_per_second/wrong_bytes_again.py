"""Bytes of the weights taken for a number of parameters

Hint: The argument holds bytes already. Where does your factor of 2 come from?
Caught by: decode-reads-the-weights-once
"""


def decode_tokens_per_second(weight_bytes, bandwidth):
    return bandwidth / (2 * weight_bytes)
