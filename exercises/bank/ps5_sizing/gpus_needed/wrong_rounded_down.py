"""Rounded down

Hint: Where does the part go that the last GPU would hold?
Caught by: gpus-are-rounded-up
"""


def gpus_needed(weight_bytes, memory_bytes):
    return weight_bytes // memory_bytes
