"""Whole tokens only

Hint: A large model may write one token in four seconds. `//` calls that 0.
Caught by: decode-is-not-rounded
"""


def decode_tokens_per_second(weight_bytes, bandwidth):
    return bandwidth // weight_bytes
