"""The seconds are rounded to four decimals.

Hint: Return the number as it is; rounding is for printing.
Caught by: step-seconds
"""


def decode_step(batch, context, weight_bytes, kv_bytes_per_token, bandwidth):
    seconds = (weight_bytes + batch * context * kv_bytes_per_token) / bandwidth
    return round(seconds, 4), batch / seconds
