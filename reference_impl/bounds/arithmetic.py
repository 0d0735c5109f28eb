"""Serving by arithmetic: how long must a step take, how much fits, and what helps?

Everything follows from two facts. A GPU computes so many FLOPs and moves so many bytes a second (`hardware`), and a
step computes 2 FLOPs per parameter and token and reads each weight once. The functions here are the short formulas that
fit on paper, and each says what it leaves out. `deployment` puts them together for one model on one kind of GPU, with a
roofline for each kind of operator. Times are in seconds, sizes in bytes, and 1 GB is 10^9 bytes. After Stanford CS336,
lecture 10. Standard library only.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

# --- Prefill: all tokens of the prompt at once, limited by arithmetic -----------------------------------------------


def prefill_flops(n_params: float, n_tokens: int) -> float:
    """2 P T: a multiplication and an addition per parameter and token. Attention is extra: `attention_flops`."""
    _positive(n_params=n_params)
    return 2 * n_params * _count(n_tokens=n_tokens)


def attention_flops(n_layers: int, n_heads: int, head_dim: int, n_tokens: int) -> int:
    """Scores and weighted sums of a causal prefill: 4 FLOPs per layer, head, dimension and visible key."""
    pairs = n_tokens * (n_tokens + 1) // 2
    return 4 * n_layers * n_heads * head_dim * pairs


def time_to_first_token(
    n_params: float, n_tokens: int, peak_flops: float, utilization: float, attention: float = 0.0
) -> float:
    """Seconds of a compute-bound prefill at this share (0 to 1) of the peak; `attention`: from `attention_flops`, or 0.

    It leaves out the reading of the weights, which takes longer than the arithmetic if the prompt has fewer tokens than
    the ridge times the share. `Deployment.prefill_seconds` counts it.
    """
    _positive(peak_flops=peak_flops, utilization=utilization)
    if utilization > 1:
        raise ValueError(f"utilization is a share of the peak, at most 1, got {utilization}")
    return (prefill_flops(n_params, n_tokens) + attention) / (peak_flops * utilization)


# --- Decode: one token a sequence and step, limited by bytes --------------------------------------------------------


def decode_tokens_per_second(weight_bytes: float, bandwidth: float) -> float:
    """The bound for one sequence with next to no context: each step reads every weight once."""
    _positive(weight_bytes=weight_bytes, bandwidth=bandwidth)
    return bandwidth / weight_bytes


def kv_bytes_per_token(n_layers: int, n_kv_heads: int, head_dim: int, bytes_per_value: float) -> float:
    """Bytes that one token keeps in the cache: K and V of every layer and KV head."""
    _positive(n_layers=n_layers, n_kv_heads=n_kv_heads, head_dim=head_dim, bytes_per_value=bytes_per_value)
    return 2 * n_layers * n_kv_heads * head_dim * bytes_per_value


def decode_step(
    batch: int, context: int, weight_bytes: float, kv_bytes_per_token: float, bandwidth: float
) -> tuple[float, float]:
    """(seconds, tokens per second of the batch): a step reads the weights once and each sequence's own KV cache.

    It leaves out arithmetic. That is right while the linear layers are memory-bound, which with 16-bit weights means a
    batch below the ridge. `Deployment.step` counts both.
    """
    _positive(weight_bytes=weight_bytes, bandwidth=bandwidth)
    if context < 0 or kv_bytes_per_token < 0:
        raise ValueError(f"context and KV bytes cannot be negative, got {context} and {kv_bytes_per_token}")
    seconds = step_seconds(weight_bytes, _count(batch=batch) * context * kv_bytes_per_token, bandwidth, 1)
    return seconds, batch / seconds


@dataclass(frozen=True)
class BatchRow:
    """One row of the batch table."""

    batch: int
    bytes_read: float  # by a step; weights and caches take as much in memory
    seconds: float
    tokens_per_second: float  # of all sequences together


def batch_table(
    batches: Sequence[int], context: int, weight_bytes: float, kv_bytes_per_token: float, bandwidth: float
) -> list[BatchRow]:
    """Latency against throughput: one row for each batch size, every sequence `context` tokens long."""
    rows = []
    for batch in batches:
        seconds, rate = decode_step(batch, context, weight_bytes, kv_bytes_per_token, bandwidth)
        rows.append(BatchRow(batch, seconds * bandwidth, seconds, rate))
    return rows


# --- Memory and sizing ----------------------------------------------------------------------------------------------


def max_sequences(memory_bytes: float, weight_bytes: float, kv_bytes_per_token: float, context: int) -> int:
    """Whole sequences of `context` tokens that fit beside the weights. ValueError if the weights alone do not."""
    _positive(kv_bytes_per_token=kv_bytes_per_token, context=context)
    if weight_bytes > memory_bytes:
        raise ValueError(f"the weights ({weight_bytes:,.0f} bytes) do not fit in {memory_bytes:,.0f} bytes of memory")
    return int((memory_bytes - weight_bytes) // (kv_bytes_per_token * context))


def bits_per_weight(bits: float, group_size: int | None = None, scale_bits: int = 16) -> float:
    """Bits that a stored weight costs with one scale (or scale and zero point: their sum) of `scale_bits` per group."""
    _positive(bits=bits)
    return bits + scale_bits / _count(group_size=group_size) if group_size is not None else bits


def weight_bytes(n_params: int, bits: float, group_size: int | None = None, scale_bits: int = 16) -> float:
    """Bytes of all weights, the scales of all groups (the last one may be partial) included."""
    _positive(n_params=n_params, bits=bits)
    groups = -(-n_params // _count(group_size=group_size)) if group_size is not None else 0
    return (n_params * bits + groups * scale_bits) / 8


def gpus_needed(weight_bytes: float, memory_bytes: float) -> int:
    """The fewest GPUs whose memories together hold the weights. The KV cache comes on top."""
    _positive(weight_bytes=weight_bytes, memory_bytes=memory_bytes)
    return int(-(-weight_bytes // memory_bytes))


def step_seconds(weight_bytes: float, kv_bytes: float, bandwidth: float, n_gpus: int) -> float:
    """A decode step over `n_gpus` that each read their own share at the same time.

    It leaves out arithmetic, as `decode_step` does, and communication.
    """
    _positive(bandwidth=bandwidth)
    return (weight_bytes + kv_bytes) / (bandwidth * _count(n_gpus=n_gpus))


# --- Roofline: which of the two limits binds, and where does it change? ---------------------------------------------


def compute_bound_batch(n_params: float, weight_bytes: float, ridge: float) -> int:
    """The smallest batch at which the linear layers of a decode step are compute-bound, whatever the context.

    They read `weight_bytes` once and compute 2 FLOPs per parameter and sequence. With 16-bit weights it is the ridge.
    """
    _positive(n_params=n_params, weight_bytes=weight_bytes, ridge=ridge)
    return math.ceil(ridge * weight_bytes / (2 * n_params))


def crossing_batch(
    flops_per_sequence: float, bytes_per_sequence: float, shared_bytes: float, ridge: float
) -> int | None:
    """The smallest batch whose step as a whole takes longer for its FLOPs than for its bytes; None if none does.

    A sequence costs `flops_per_sequence`, and reads `bytes_per_sequence` (its KV cache) beside the weights,
    `shared_bytes`. As the batch grows, the intensity approaches flops / bytes of a sequence; if that is below the
    ridge, nothing crosses. The linear layers alone cross earlier: `compute_bound_batch`.
    """
    _positive(flops_per_sequence=flops_per_sequence, ridge=ridge)
    surplus = flops_per_sequence - ridge * bytes_per_sequence  # FLOPs of a sequence that its bytes leave no time for
    return math.ceil(ridge * shared_bytes / surplus) if surplus > 0 else None


def crossing_context(
    n_params: float, kv_bytes_per_token: float, ridge: float, attention_flops_per_token: float = 0.0
) -> float:
    """Tokens of context at and above which a decode step as a whole reads longer than it computes, at every batch size.

    `attention_flops_per_token`: FLOPs of one new token per token of its context (4 · layers · heads · head_dim), 0 to
    leave attention out. Infinite where attention alone is above the ridge.
    """
    _positive(n_params=n_params, kv_bytes_per_token=kv_bytes_per_token, ridge=ridge)
    hidden = ridge * kv_bytes_per_token - attention_flops_per_token
    return 2 * n_params / hidden if hidden > 0 else math.inf


# --- Speculative decoding -------------------------------------------------------------------------------------------


def expected_tokens(alpha: float, k: int) -> float:
    """Tokens per target pass when each of `k` drafted tokens is accepted with probability `alpha`.

    1 + α + ... + α^k: (1 - α^(k+1)) / (1 - α) for α < 1 (Leviathan et al., 2023, equation 1) and k + 1 at α = 1.
    """
    _share(alpha)
    if not isinstance(k, int) or k < 0:
        raise ValueError(f"k must be a whole number of drafted tokens, 0 or more, got {k}")
    return k + 1.0 if alpha == 1 else (1 - alpha ** (k + 1)) / (1 - alpha)


def speculative_speedup(alpha: float, k: int, cost: float, verify: float = 1.0) -> float:
    """Speed against plain decoding; `cost` of a draft pass and `verify` of a pass over k + 1 tokens in plain passes.

    Leviathan et al. (2023), theorem 3.8, is the case verify = 1: checking k + 1 tokens costs as much as writing one.
    """
    if not (0 <= cost < math.inf and 0 < verify < math.inf):
        raise ValueError(f"costs are in target passes: cost 0 or more, verify above 0, got {cost} and {verify}")
    return expected_tokens(alpha, k) / (k * cost + verify)


def best_draft_length(
    alpha: float, cost: float, verify: Callable[[int], float] | None = None, max_k: int | None = None
) -> int:
    """The k >= 0 with the highest speed-up, the smallest one on a tie.

    `verify(k)`: cost of a target pass over k + 1 tokens in plain passes, 1 where not given; it grows where the linear
    layers are compute-bound, as in a large batch (`Deployment.verify_cost`), and is never below 1. Raises ValueError
    where longer drafts are better without end (α = 1, or drafts for nothing) and no `max_k` says where to stop.
    """
    if cost >= 1:
        return 0  # k + 1 tokens for k + 1 target passes' worth of time, at best
    if max_k is None and alpha > 0 and (cost == 0 or alpha == 1):
        raise ValueError(f"at alpha {alpha} and cost {cost} longer drafts are better without end: give max_k")
    speedup = lambda k: speculative_speedup(alpha, k, cost, verify(k) if verify else 1.0)
    best, best_speedup, k = 0, speedup(0), 0
    # A longer draft can bring at most 1 / (1 - α) tokens: stop when even those could not beat the best k.
    most_tokens = 1 / (1 - alpha) if alpha < 1 else math.inf
    while (max_k is None or k < max_k) and most_tokens / ((k + 1) * cost + 1) > best_speedup:
        k += 1
        if speedup(k) > best_speedup:
            best, best_speedup = k, speedup(k)
    return best


def _positive(**values: float) -> None:
    for name, value in values.items():
        if not 0 < value < math.inf:
            raise ValueError(f"{name} must be positive and finite, got {value}")


def _count(**values: int) -> int:
    """The one value, if it is a whole number from 1 on."""
    ((name, value),) = values.items()
    if not (value >= 1 and value % 1 == 0):
        raise ValueError(f"{name} must be a whole number from 1 on, got {value}")
    return int(value)


def _share(alpha: float) -> None:
    if not 0 <= alpha <= 1:
        raise ValueError(f"alpha is a probability, 0 to 1, got {alpha}")
