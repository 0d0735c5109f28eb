"""One more than the whole ones, also where they fit exactly

Hint: Two GPUs of 80 bytes hold 160 bytes. Do you ask for a third?
Caught by: gpus-that-fit-exactly
"""


def gpus_needed(weight_bytes, memory_bytes):
    return weight_bytes // memory_bytes + 1
