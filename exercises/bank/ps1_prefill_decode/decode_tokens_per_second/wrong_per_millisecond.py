"""Tokens per millisecond

Hint: Your result is a thousand times too small: which unit of time did you use?
Caught by: decode-reads-the-weights-once
"""


def decode_tokens_per_second(weight_bytes, bandwidth):
    milliseconds = weight_bytes / bandwidth * 1000
    return 1 / milliseconds
