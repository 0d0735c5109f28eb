"""The CPU backend, in Numba: how an operation is computed fast on every core.

`backend` says which inputs the kernels take, and calls them: `linear`, `quantized`, `attention` and `rows`. They are
built from `dots` (dot products of float weights), `vectors` (of int8 and int4 weights, for 1 to 4 rows, and of keys)
and `scalars`. `launch` runs a kernel on every core, `recording` many with one call.
"""

from reference_impl.kernels.cpu.backend import BACKEND

__all__ = ["BACKEND"]
