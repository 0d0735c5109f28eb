"""Time of one token, times the tokens, as a NumPy number"""

import numpy as np


def time_to_first_token(n_params, n_tokens, peak_flops, utilization):
    per_token = np.float64(2 * n_params) / np.float64(peak_flops)
    return n_tokens * per_token * (1 / utilization)
