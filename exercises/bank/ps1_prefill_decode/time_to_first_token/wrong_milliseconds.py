"""The result in milliseconds

Hint: Your result is a thousand times too large: which unit does the text ask for?
Caught by: first-token-at-peak
"""


def time_to_first_token(n_params, n_tokens, peak_flops, utilization):
    return 1000 * 2 * n_params * n_tokens / (peak_flops * utilization)
