"""A sequence that fits exactly is turned away

Hint: If 100 bytes are left and a sequence takes 100, it fits. Which of your comparisons is too strict?
Caught by: sequences-whole-ones-only
"""


def max_sequences(memory_bytes, weight_bytes, kv_bytes_per_token, context):
    if weight_bytes > memory_bytes:
        raise ValueError("the weights do not fit")
    left, count = memory_bytes - weight_bytes, 0
    per_sequence = kv_bytes_per_token * context
    while left > per_sequence and count < 10_000:
        left -= per_sequence
        count += 1
    return count
