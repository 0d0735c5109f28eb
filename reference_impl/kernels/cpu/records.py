"""The call record of each kernel: the fields that a caller fills in and the kernel reads by name.

A compiled kernel takes one address, that of its record. A field has 64 bits and holds an address (0 if not given) or a
number. The first field is the counter through which threads share out the work, and the last is the status that the
kernel leaves. Callers pass the fields between these two in the order in which they stand here.
"""

from __future__ import annotations

import numpy as np


def _record(*fields: str) -> np.dtype:
    """A record with these fields, all integers except `scale` and `eps`."""
    floats = {"scale", "eps"}
    names = ("counter", *fields, "status")
    return np.dtype([(name, np.float64 if name in floats else np.int64) for name in names], align=True)


# x [n, n_in] times weight [n_out, n_in]; a gated weight has twice as many rows, first the gates, then the ups. If
# given, `delta` is added to x first, the sum is written to `sums`, and it is normalised with `norm`. `share`: weight
# rows that a thread takes at a time.
_LINEAR = (
    *("x", "weight", "out", "n", "n_in", "n_out", "delta", "norm", "norm_is_bf16", "eps"),
    *("sums", "bias", "gated", "share", "bias_is_bf16"),
)
LINEAR = _record(*_LINEAR)
# `scales` and `shifts` [rows, groups] as in PackedWeight. `width` and `stored`: stored codes of a full group, of a row.
QUANTIZED = _record(*_LINEAR, "scales", "shifts", "group_size", "width", "stored", "groups")

_CACHE = ("n_tokens", "n_heads", "n_kv_heads", "head_dim", "n_blocks", "block_size", "n_seqs", "max_blocks")
# `row`: values from one token of q (or of `heads`) to the next.
ATTENTION = _record("q", "keys", "values", "out", "tables", "query_lens", "context_lens", *_CACHE, "row", "scale")
ROTATED_ATTENTION = _record(
    *("heads", "keys", "values", "out", "tables", "query_lens", "context_lens", "cos", "sin", "slots"),
    *_CACHE,
    *("row", "scale"),
)
STORE = _record(
    *("k", "v", "keys", "values", "slots", "n_tokens", "n_kv_heads", "head_dim", "n_blocks", "block_size"),
    *("k_row", "v_row"),
)

RMS_NORM = _record("x", "weight", "out", "n", "width", "eps")
NORM_HEADS = _record("heads", "q_norm", "k_norm", "out", "n", "n_queries", "n_all", "head_dim", "eps")
ROTATE = _record("x", "cos", "sin", "out", "n", "n_heads", "head_dim", "row")
SILU_MUL = _record("x", "out", "n", "width")
LOOK_UP = _record("table", "index", "out", "n", "n_rows", "width")

# n launches in order: their kernels are `functions`, and their records in `records` end at `ends`.
REPLAY = _record("functions", "ends", "records", "n", "omp_get_num_threads", "sched_yield")
