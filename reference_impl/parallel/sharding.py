"""Which rank (GPU or process) holds which part of a model under tensor parallelism.

Every pair of matrices is cut so that ranks communicate only once, after the second. The first matrix is cut by its
outputs (whole query heads, whole KV heads, part of the feed-forward width) and the second by the matching inputs, so
each rank's product is one summand of the result. That makes one all-reduce of d_model values per token after attention
and one after the feed-forward network (Shoeybi et al. 2019, "Megatron-LM", section 3). `tensor_parallel` does it.

For example, Llama 3 70B in bf16 has 141.1 GB of weights: one H100 cannot hold them, and with its bandwidth a step would
take at least 42.1 ms. Two ranks read their halves at the same time, in 21.1 ms (`weight_bytes` and `step_seconds` of
`bounds.arithmetic`). Standard library only.
"""

from dataclasses import dataclass, replace

from reference_impl.bounds.config import ModelConfig


@dataclass(frozen=True)
class Slices:
    """The part of each split dimension that one rank holds."""

    heads: range
    kv_heads: range
    d_ff: range
    vocab: range


def rank_config(config: ModelConfig, n_ranks: int) -> ModelConfig:
    """The shape of one rank's part: fewer heads, a narrower feed-forward network, fewer rows of the vocabulary.

    A cache made from it keeps the rank's own KV heads. With fewer KV heads than ranks, several ranks hold a copy of
    one. A vocabulary that does not divide stays whole on every rank. ValueError names any other dimension that does not
    divide.
    """
    if n_ranks < 1:
        raise ValueError(f"a model needs at least 1 rank, got {n_ranks}")
    for name, size in (("n_heads", config.n_heads), ("d_ff", config.d_ff)):
        if size % n_ranks:
            raise ValueError(f"{config.name}: {name} {size} does not divide over {n_ranks} ranks")
    if config.n_kv_heads % n_ranks and n_ranks % config.n_kv_heads:
        raise ValueError(
            f"{config.name}: n_kv_heads {config.n_kv_heads} does not divide over {n_ranks} ranks, nor they over it"
        )
    return replace(
        config,
        n_heads=config.n_heads // n_ranks,
        n_kv_heads=max(1, config.n_kv_heads // n_ranks),
        d_ff=config.d_ff // n_ranks,
        vocab_size=config.vocab_size if config.vocab_size % n_ranks else config.vocab_size // n_ranks,
    )


def rank_slices(config: ModelConfig, rank: int, n_ranks: int) -> Slices:
    """This rank's heads, feed-forward columns and vocabulary rows of the whole model. Ranks count from 0."""
    part = rank_config(config, n_ranks)
    if not 0 <= rank < n_ranks:
        raise ValueError(f"rank {rank} is not one of {n_ranks} ranks counted from 0")

    def consecutive(size: int) -> range:
        return range(rank * size, (rank + 1) * size)

    # Query heads stay with their KV head: with half as many KV heads as ranks, ranks 0 and 1 both hold KV head 0.
    kv_start = rank * config.n_kv_heads // n_ranks
    vocab_is_split = part.vocab_size < config.vocab_size
    return Slices(
        heads=consecutive(part.n_heads),
        kv_heads=range(kv_start, kv_start + part.n_kv_heads),
        d_ff=consecutive(part.d_ff),
        vocab=consecutive(part.vocab_size) if vocab_is_split else range(config.vocab_size),
    )
