"""The model's size written into the function

Hint: Weights of 4 bits are read four times as fast. Which of your numbers would have to change?
Caught by: decode-on-other-hardware
"""


def decode_tokens_per_second(weight_bytes, bandwidth):
    return bandwidth / (2 * 8_030_261_248)
