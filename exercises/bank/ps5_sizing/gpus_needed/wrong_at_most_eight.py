"""At most eight GPUs, as in one server

Hint: What if the bytes need more than one server? Try 1000 bytes and GPUs of 10.
Caught by: gpus-of-other-sizes
"""

import math


def gpus_needed(weight_bytes, memory_bytes):
    return min(8, math.ceil(weight_bytes / memory_bytes))
