"""Rounded to whole milliseconds

Hint: A short prompt comes out as 0 seconds, or with too few digits. The text asks for no rounding.
Caught by: first-token-short-and-long-waits
"""


def time_to_first_token(n_params, n_tokens, peak_flops, utilization):
    return round(2 * n_params * n_tokens / (peak_flops * utilization), 3)
