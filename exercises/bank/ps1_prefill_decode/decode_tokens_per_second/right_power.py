"""A power of minus one"""


def decode_tokens_per_second(weight_bytes, bandwidth):
    return (weight_bytes / bandwidth) ** -1
