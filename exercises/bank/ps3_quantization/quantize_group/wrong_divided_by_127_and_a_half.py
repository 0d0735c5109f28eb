"""absmax / 127.5 as the scale

Hint: The largest weight shall come back exactly: its integer times the scale must give it again.
Caught by: group-scale-and-integers
"""


def quantize_group(weights):
    scale = max(abs(w) for w in weights) / 127.5
    return scale, [round(w / scale) if scale else 0 for w in weights]
