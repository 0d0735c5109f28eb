"""NumPy: sum of a vector of powers."""

import numpy as np


def expected_tokens(alpha, k):
    return np.sum(np.power(float(alpha), np.arange(k + 1)))
