"""An exact fraction, turned into a float at the end"""

from fractions import Fraction


def decode_tokens_per_second(weight_bytes, bandwidth):
    return float(Fraction(bandwidth) / Fraction(weight_bytes))
