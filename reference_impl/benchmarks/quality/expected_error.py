"""How large the rounding error of group-wise quantization is: measured, and predicted for normally distributed weights.

Rounding to a grid of step s errs by up to s/2 either way, evenly spread, so by s/√12 on average (root mean square).
The step is the group's largest weight over 2^(bits-1) - 1, so the prediction only needs the expected largest of n
normal numbers. Standard library only; the measurement takes NumPy arrays or torch tensors.
"""

import math
from typing import Any


def relative_error(weight: Any, restored: Any) -> float:
    """Root mean square of the error over root mean square of the weights; 0 if nothing was lost.

    weight, restored: arrays or tensors of one shape. ValueError for other shapes, and if all weights are 0.
    """
    if tuple(weight.shape) != tuple(restored.shape):
        raise ValueError(f"the shapes differ: weight {tuple(weight.shape)}, restored {tuple(restored.shape)}")
    power = float((weight * weight).sum())
    if power == 0:
        raise ValueError("all weights are 0: there is nothing to be relative to")
    difference = weight - restored
    return math.sqrt(float((difference * difference).sum()) / power)


def expected_largest(group_size: int) -> float:
    """Root mean square of the largest magnitude among `group_size` standard normal numbers.

    The mean of max² is the integral of 2x · P(max > x), and P(max <= x) = erf(x/√2)^n. Midpoint rule, exact to 1e-4.
    """
    step = 0.01
    tail = (x * (1.0 - math.erf(x / math.sqrt(2.0)) ** group_size) for x in ((i + 0.5) * step for i in range(1000)))
    return math.sqrt(2.0 * step * math.fsum(tail))


def expected_error(group_size: int, bits: int) -> float:
    """The relative error to expect of absmax quantization if the weights of a group are normal with mean 0.

    The largest weight of a group comes back exactly, hence the factor 1 - 1/n. Good to 1 % from 4 bits up. ValueError
    for a group size below 1 or fewer than 2 bits.
    """
    if group_size < 1:
        raise ValueError(f"a group holds at least one weight, got a group size of {group_size}")
    if bits < 2:
        raise ValueError(f"a signed grid needs at least 2 bits, got {bits}")
    levels_each_side = 2 ** (bits - 1) - 1
    return expected_largest(group_size) / levels_each_side * math.sqrt((1.0 - 1.0 / group_size) / 12.0)
