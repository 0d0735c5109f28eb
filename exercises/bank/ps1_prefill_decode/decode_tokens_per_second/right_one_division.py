"""Bandwidth over bytes"""


def decode_tokens_per_second(weight_bytes, bandwidth):
    return bandwidth / weight_bytes
