"""The range from minimum to maximum, as for formats with a zero point

Hint: The integer 0 must stand for the weight 0. Does it in your version?
Caught by: group-scale-and-integers
"""


def quantize_group(weights):
    low, high = min(weights), max(weights)
    scale = (high - low) / 254
    if scale == 0:
        return 0.0, [0] * len(weights)
    return scale, [round((w - low) / scale) - 127 for w in weights]
