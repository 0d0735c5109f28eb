"""The largest absolute value itself as the scale

Hint: All your integers are -1, 0 or 1. How many steps shall lie between 0 and the largest weight?
Caught by: group-scale-and-integers
"""


def quantize_group(weights):
    scale = max(abs(w) for w in weights)
    return scale, [round(w / scale) if scale else 0 for w in weights]
