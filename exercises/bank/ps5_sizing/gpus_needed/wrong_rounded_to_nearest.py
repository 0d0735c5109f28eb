"""Rounded to the nearest whole number

Hint: 1.01 GPUs: does one hold it?
Caught by: gpus-are-rounded-up
"""


def gpus_needed(weight_bytes, memory_bytes):
    return max(1, round(weight_bytes / memory_bytes))
