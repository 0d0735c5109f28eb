"""The time of one token, not of the prompt

Hint: A prompt of 2,000 tokens takes longer than one of 3. Does yours?
Caught by: first-token-at-peak
"""


def time_to_first_token(n_params, n_tokens, peak_flops, utilization):
    return 2 * n_params / (peak_flops * utilization)
