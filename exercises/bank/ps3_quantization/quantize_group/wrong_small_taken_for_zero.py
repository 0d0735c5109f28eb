"""Small weights taken for zero

Hint: Only a group whose weights are all 0 has scale 0. From which size on does yours count?
Caught by: group-of-zeros
"""


def quantize_group(weights):
    largest = max(abs(w) for w in weights)
    if largest < 1e-3:
        return 0.0, [0] * len(weights)
    return largest / 127, [round(w / (largest / 127)) for w in weights]
