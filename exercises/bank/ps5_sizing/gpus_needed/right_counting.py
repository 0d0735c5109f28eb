"""Counted up until everything fits"""


def gpus_needed(weight_bytes, memory_bytes):
    n = 1
    while n * memory_bytes < weight_bytes:
        n += 1
    return n
