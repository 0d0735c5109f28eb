"""Multiplied by the utilization instead of divided

Hint: A GPU that is used at half of its peak must take longer, not shorter.
Caught by: first-token-utilization
"""


def time_to_first_token(n_params, n_tokens, peak_flops, utilization):
    return 2 * n_params * n_tokens / peak_flops * utilization
