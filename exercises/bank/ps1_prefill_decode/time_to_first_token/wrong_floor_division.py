"""Divided without remainder

Hint: `//` throws away what is behind the point, and the wait is mostly below one second.
Caught by: first-token-short-and-long-waits
"""


def time_to_first_token(n_params, n_tokens, peak_flops, utilization):
    return 2 * n_params * n_tokens // (peak_flops * utilization)
