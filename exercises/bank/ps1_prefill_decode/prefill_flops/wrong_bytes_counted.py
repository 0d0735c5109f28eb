"""Bytes of the parameters counted beside the operations

Hint: How many bytes a parameter takes does not change how many operations it is used in.
Caught by: flops-of-one-token
"""


def prefill_flops(n_params, n_tokens):
    weight_bytes = 2 * n_params
    return 2 * weight_bytes * n_tokens
