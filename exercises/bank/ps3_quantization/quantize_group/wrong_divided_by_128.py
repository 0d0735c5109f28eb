"""absmax / 128 as the scale

Hint: The largest weight must become 127, the largest integer we use. What becomes of it in your version?
Caught by: group-scale-and-integers
"""


def quantize_group(weights):
    scale = max(abs(w) for w in weights) / 128
    return scale, [round(w / scale) if scale else 0 for w in weights]
