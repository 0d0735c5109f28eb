"""A group of zeros divided by its scale of zero

Hint: What is the scale of a group that holds only zeros? And what do you divide by it?
Caught by: group-of-zeros
"""


def quantize_group(weights):
    scale = max(abs(w) for w in weights) / 127
    return scale, [round(w / scale) for w in weights]
