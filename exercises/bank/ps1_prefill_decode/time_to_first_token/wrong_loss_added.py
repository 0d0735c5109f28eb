"""The unused share added once, as if half of the peak made it half as long again

Hint: At a quarter of the peak it takes four times as long. What does your formula say?
Caught by: first-token-utilization
"""


def time_to_first_token(n_params, n_tokens, peak_flops, utilization):
    return 2 * n_params * n_tokens / peak_flops * (1 + (1 - utilization))
