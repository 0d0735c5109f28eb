"""A scale of 1 for a group of zeros

Hint: The text says which scale a group of zeros has.
Caught by: group-of-zeros
"""


def quantize_group(weights):
    scale = max(abs(w) for w in weights) / 127 or 1.0
    return scale, [round(w / scale) for w in weights]
