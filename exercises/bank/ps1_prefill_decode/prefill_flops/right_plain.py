"""One product"""


def prefill_flops(n_params, n_tokens):
    return n_tokens * n_params * 2
