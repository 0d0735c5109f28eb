"""The CPU kernels' front: what a backend offers, gathered from where it is done.

The calls are in `cpu_products`, `cpu_cached` and `cpu_small`, the kernels in `cpu_linear`, `cpu_quantized`,
`cpu_attention` and `cpu_rows`; how these run on every core, in `threads`.
"""

from reference_impl.kernels.cpu.attention_calls import (
    paged_attention,
    rotated_attention,
    store_kv,
    takes_attention,
    takes_rotated_attention,
    takes_store,
)
from reference_impl.kernels.cpu.call import takes_rows
from reference_impl.kernels.cpu.product_calls import (
    linear,
    norm_linear,
    quantized_linear,
    takes_linear,
    takes_norm_linear,
    takes_quantized,
)
from reference_impl.kernels.cpu.row_calls import (
    look_up,
    norm_heads,
    rms_norm,
    rotate,
    silu_mul,
    takes_look_up,
    takes_rotation,
)

FUSES_NORM = True  # products with a norm before them are one call

__all__ = [
    "FUSES_NORM",
    "linear",
    "look_up",
    "norm_heads",
    "norm_linear",
    "paged_attention",
    "quantized_linear",
    "rms_norm",
    "rotate",
    "rotated_attention",
    "silu_mul",
    "store_kv",
    "takes_attention",
    "takes_linear",
    "takes_look_up",
    "takes_norm_linear",
    "takes_quantized",
    "takes_rotated_attention",
    "takes_rotation",
    "takes_rows",
    "takes_store",
]
