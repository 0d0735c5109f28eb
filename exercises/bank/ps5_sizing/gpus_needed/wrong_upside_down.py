"""Memory divided by weights

Hint: More weights must need more GPUs. What is divided by what?
Caught by: gpus-are-rounded-up, gpus-of-other-sizes
"""


def gpus_needed(weight_bytes, memory_bytes):
    return -(-memory_bytes // weight_bytes)
