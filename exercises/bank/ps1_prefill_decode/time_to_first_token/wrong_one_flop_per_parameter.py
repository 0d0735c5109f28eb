"""A multiply-add counted as one operation

Hint: You get half of the right time. What does one parameter cost per token, in the units of `peak_flops`?
Caught by: first-token-at-peak
"""


def time_to_first_token(n_params, n_tokens, peak_flops, utilization):
    return n_params * n_tokens / (peak_flops * utilization)
