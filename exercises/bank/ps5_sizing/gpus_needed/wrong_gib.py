"""Memory taken for binary gibibytes

Hint: Your version lets some models fit that are a few per cent too large. Both arguments are in bytes: convert
nothing.
Caught by: gpus-are-rounded-up, gpus-of-other-sizes
"""

import math


def gpus_needed(weight_bytes, memory_bytes):
    return math.ceil(weight_bytes / (memory_bytes / 1e9 * 2**30))
