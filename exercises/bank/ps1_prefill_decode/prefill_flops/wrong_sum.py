"""Tokens added to the work of one token

Hint: Each token costs as much as the first one. Is that a sum or a product?
Caught by: flops-of-a-prompt
"""


def prefill_flops(n_params, n_tokens):
    return 2 * n_params + n_tokens
