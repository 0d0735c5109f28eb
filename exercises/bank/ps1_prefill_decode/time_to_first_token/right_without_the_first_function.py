"""One expression, nothing reused"""


def time_to_first_token(n_params, n_tokens, peak_flops, utilization):
    return 2 * n_params * n_tokens / (peak_flops * utilization)
