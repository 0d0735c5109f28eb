"""The last token of the prompt left to decode

Hint: Try a prompt of a single token: is there nothing to compute?
Caught by: flops-of-one-token, flops-of-a-prompt
"""


def prefill_flops(n_params, n_tokens):
    return 2 * n_params * (n_tokens - 1)
