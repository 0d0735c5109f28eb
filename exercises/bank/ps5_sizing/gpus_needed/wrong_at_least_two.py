"""One GPU ruled out

Hint: What if everything fits into a single one?
Caught by: gpus-that-fit-exactly, gpus-of-other-sizes
"""

import math


def gpus_needed(weight_bytes, memory_bytes):
    return max(2, math.ceil(weight_bytes / memory_bytes))
