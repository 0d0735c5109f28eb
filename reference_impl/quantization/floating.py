"""The values that a floating-point format of few bits can hold, such as FP8 (E4M3) and FP4 (E2M1).

Sources: Micikevicius et al. 2022, "FP8 Formats for Deep Learning"; Rouhani et al. 2023, "Microscaling Data Formats".
"""


def float_values(exponent_bits: int, mantissa_bits: int, nan: bool = False) -> list[float]:
    """All finite values of a format, in order, both zeros counted once.

    The exponent's bias is 2^(exponent_bits - 1) - 1, and exponent 0 holds the subnormal numbers. There are no
    infinities; with `nan`, as in E4M3, the largest pattern of each sign stands for "not a number".
    """
    bias, steps = 2 ** (exponent_bits - 1) - 1, 2**mantissa_bits
    found = [mantissa / steps * 2.0 ** (1 - bias) for mantissa in range(steps)]
    for exponent in range(1, 2**exponent_bits):
        found += [(1 + mantissa / steps) * 2.0 ** (exponent - bias) for mantissa in range(steps)]
    if nan:
        found.pop()
    return [-value for value in reversed(found[1:])] + found
