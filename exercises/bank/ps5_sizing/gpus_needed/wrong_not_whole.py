"""Parts of a GPU

Hint: Can you buy 1.76 GPUs?
Caught by: gpus-are-rounded-up
"""


def gpus_needed(weight_bytes, memory_bytes):
    return weight_bytes / memory_bytes
