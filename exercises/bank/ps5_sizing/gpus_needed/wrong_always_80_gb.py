"""The memory of one GPU written into the function

Hint: One of the arguments never shows in your result. Try a GPU of 24 GB.
Caught by: gpus-of-other-sizes
"""

import math


def gpus_needed(weight_bytes, memory_bytes):
    return math.ceil(weight_bytes / 80e9)
