"""Half-way cases rounded up

Hint: `floor(x + 0.5)` turns 0.5 into 1 and 2.5 into 3. To which neighbour shall a tie go?
Caught by: group-ties-to-even
"""

import math


def quantize_group(weights):
    scale = max(abs(w) for w in weights) / 127
    return scale, [math.floor(w / scale + 0.5) if scale else 0 for w in weights]
