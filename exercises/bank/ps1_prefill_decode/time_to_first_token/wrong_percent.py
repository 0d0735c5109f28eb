"""The utilization taken for a percentage

Hint: Half is given as 0.5 here, not as 50.
Caught by: first-token-at-peak, first-token-utilization
"""


def time_to_first_token(n_params, n_tokens, peak_flops, utilization):
    return 2 * n_params * n_tokens / (peak_flops * utilization / 100)
