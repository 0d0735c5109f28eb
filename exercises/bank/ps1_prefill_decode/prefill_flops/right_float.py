"""In floating point"""


def prefill_flops(n_params, n_tokens):
    flops_per_token = 2.0 * float(n_params)
    return flops_per_token * n_tokens
