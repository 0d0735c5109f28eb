"""With math.ceil"""

import math


def gpus_needed(weight_bytes, memory_bytes):
    return math.ceil(weight_bytes / memory_bytes)
