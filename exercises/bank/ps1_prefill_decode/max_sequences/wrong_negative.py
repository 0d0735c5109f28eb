"""A negative number of sequences

Hint: What does your function say for weights that are larger than the memory?
Caught by: sequences-weights-do-not-fit
"""


def max_sequences(memory_bytes, weight_bytes, kv_bytes_per_token, context):
    return (memory_bytes - weight_bytes) // (kv_bytes_per_token * context)
