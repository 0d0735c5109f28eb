"""The scale in float32

Hint: The first seven digits of your scale are right. The text asks for Python's own floats.
Caught by: group-scale-and-integers
"""


def quantize_group(weights):
    scale = np.max(np.abs(np.array(weights, dtype=np.float32))) / np.float32(127)
    if scale == 0:
        return 0.0, [0] * len(weights)
    return float(scale), [round(w / float(scale)) for w in weights]
