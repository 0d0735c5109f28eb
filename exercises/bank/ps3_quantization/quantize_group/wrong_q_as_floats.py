"""Rounded numbers that are still floats

Hint: 2.0 is not an integer for Python. Look at the type of what stands in q.
Caught by: group-scale-and-integers
"""


def quantize_group(weights):
    scale = max(abs(w) for w in weights) / 127
    return scale, [float(round(w / scale)) if scale else 0.0 for w in weights]
