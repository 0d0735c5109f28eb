"""A list of Python's integers"""


def unpack_int4(packed, n):
    values = []
    for i in range(n):
        half = (int(packed[i // 2]) >> (4 * (i % 2))) & 15
        values.append(half - 16 if half & 8 else half)
    return values
