"""The result in TFLOPs

Hint: The text asks for FLOPs; a factor of 10¹² is missing.
Caught by: flops-of-one-token, flops-of-a-prompt
"""


def prefill_flops(n_params, n_tokens):
    return 2 * n_params * n_tokens / 1e12
