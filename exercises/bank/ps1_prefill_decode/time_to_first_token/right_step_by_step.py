"""Divided twice"""


def time_to_first_token(n_params, n_tokens, peak_flops, utilization):
    work = prefill_flops(n_params, n_tokens)
    at_peak = work / peak_flops
    return at_peak / utilization
