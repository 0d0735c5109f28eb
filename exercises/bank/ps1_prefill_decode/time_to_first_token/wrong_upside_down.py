"""Work per second divided by work

Hint: More tokens must take longer. Yours get faster: what is divided by what?
Caught by: first-token-at-peak
"""


def time_to_first_token(n_params, n_tokens, peak_flops, utilization):
    return peak_flops * utilization / (2 * n_params * n_tokens)
