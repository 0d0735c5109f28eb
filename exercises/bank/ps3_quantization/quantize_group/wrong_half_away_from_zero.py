"""Half-way cases rounded away from zero

Hint: This is how people round at school, and how GGUF's Q8_0 does it. Here a tie goes to the even neighbour.
Caught by: group-ties-to-even
"""

import math


def quantize_group(weights):
    scale = max(abs(w) for w in weights) / 127
    if scale == 0:
        return 0.0, [0] * len(weights)
    return scale, [int(math.copysign(math.floor(abs(w) / scale + 0.5), w)) for w in weights]
