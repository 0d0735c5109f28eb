"""A reached share of the bandwidth assumed

Hint: The text asks for the best that is possible. What did you multiply by?
Caught by: decode-reads-the-weights-once
"""


def decode_tokens_per_second(weight_bytes, bandwidth):
    return 0.85 * bandwidth / weight_bytes
