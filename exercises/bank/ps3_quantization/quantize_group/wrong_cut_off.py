"""Digits behind the point cut off instead of rounded

Hint: 1.905 is nearer to 2 than to 1. What does `int` do with it?
Caught by: group-scale-and-integers
"""


def quantize_group(weights):
    scale = max(abs(w) for w in weights) / 127
    return scale, [int(w / scale) if scale else 0 for w in weights]
