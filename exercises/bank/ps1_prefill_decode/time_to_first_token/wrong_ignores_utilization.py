"""The peak taken as what is reached

Hint: One of the arguments never shows in your result.
Caught by: first-token-utilization
"""


def time_to_first_token(n_params, n_tokens, peak_flops, utilization):
    return 2 * n_params * n_tokens / peak_flops
