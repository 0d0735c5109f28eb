"""0 where the weights do not fit

Hint: "No user fits" and "the model does not run at all" are two different things. Which one is a ValueError?
Caught by: sequences-weights-do-not-fit
"""


def max_sequences(memory_bytes, weight_bytes, kv_bytes_per_token, context):
    return max(0, (memory_bytes - weight_bytes) // (kv_bytes_per_token * context))
