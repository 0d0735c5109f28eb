"""A multiply-add counted as one operation

Hint: One token uses each parameter in a multiplication and in an addition. How many operations is that?
Caught by: flops-of-one-token
"""


def prefill_flops(n_params, n_tokens):
    return n_params * n_tokens
