"""Computed in float32, which keeps 7 digits

Hint: The first digits are right and the later ones are not: in which precision do you compute?
Caught by: flops-of-one-token, flops-of-a-prompt
"""

import numpy as np


def prefill_flops(n_params, n_tokens):
    return np.float32(2) * np.float32(n_params) * np.float32(n_tokens)
