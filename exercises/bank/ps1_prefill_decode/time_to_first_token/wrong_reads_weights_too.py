"""The time of one decode step added

Hint: The first token comes out of prefill itself. What else did you add to it?
Caught by: first-token-at-peak
"""


def time_to_first_token(n_params, n_tokens, peak_flops, utilization):
    prefill = 2 * n_params * n_tokens / (peak_flops * utilization)
    step = 2 * n_params / 3.35e12
    return prefill + step
