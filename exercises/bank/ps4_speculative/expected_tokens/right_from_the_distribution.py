"""The mean over how many guesses are right: m of them with probability alpha**m (1 - alpha)."""

import math


def expected_tokens(alpha, k):
    mean = math.fsum(m * alpha**m * (1 - alpha) for m in range(k)) + k * alpha**k
    return 1 + mean
