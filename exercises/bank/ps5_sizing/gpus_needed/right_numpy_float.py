"""NumPy, as a float"""

import numpy as np


def gpus_needed(weight_bytes, memory_bytes):
    return np.ceil(np.float64(weight_bytes) / np.float64(memory_bytes))
