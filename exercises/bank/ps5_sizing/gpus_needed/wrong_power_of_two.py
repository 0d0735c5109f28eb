"""Rounded up to 1, 2, 4 or 8

Hint: 161 bytes fit into three GPUs of 80. The smallest number is asked for, whatever it can be divided by.
Caught by: gpus-are-rounded-up
"""


def gpus_needed(weight_bytes, memory_bytes):
    n = 1
    while n * memory_bytes < weight_bytes:
        n *= 2
    return n
