"""A tenth of the memory kept free

Hint: The text asks for the smallest number that holds the bytes. What do you keep free?
Caught by: gpus-that-fit-exactly
"""

import math


def gpus_needed(weight_bytes, memory_bytes):
    return math.ceil(weight_bytes / (0.9 * memory_bytes))
