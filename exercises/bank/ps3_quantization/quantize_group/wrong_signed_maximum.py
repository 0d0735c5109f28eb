"""The largest weight instead of the largest absolute value

Hint: In `[-2.54, 1.3, 0.02]`, which weight has the largest magnitude?
Caught by: group-scale-and-integers
"""


def quantize_group(weights):
    scale = max(weights) / 127
    return scale, [round(w / scale) if scale else 0 for w in weights]
