"""Tensor parallelism: one model over several ranks, each with its own slice of every matrix and its own KV heads.

The forward pass stays that of `model`: each rank runs it on a narrower model. Three places put the parts together. The
matrices that end attention and the feed-forward network give each rank one summand (all-reduce). So does the input
embedding, since a rank has the rows of its part of the vocabulary. The output head gives each rank part of the logits
(all-gather). `sharding` says which rank holds what, with numbers for 70B on two GPUs. After Shoeybi et al. 2019,
"Megatron-LM", section 3.

All ranks make the same calls in the same order with the same tokens, and all receive the same logits bit for bit, so
each chooses the same next token without being told. Over `torch.distributed`: NCCL on GPUs, gloo on CPUs.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path

import torch
import torch.distributed as dist
from torch import Tensor, nn
from torch.nn import functional as F  # noqa: N812

from reference_impl.bounds.config import MODELS, ModelConfig
from reference_impl.checkpoints import weights
from reference_impl.checkpoints.shape import check_shape, limited
from reference_impl.common.errors import WeightsError
from reference_impl.model.llama import Layer, Llama
from reference_impl.parallel.sharding import rank_config, rank_slices

Group = dist.ProcessGroup | None  # None: all ranks

# For each weight, the dimension that is split ([out, in]: 0 makes a column-parallel matrix, 1 a row-parallel one) and
# what it counts. Fused matrices are split by their parts. A weight that is not named here is whole on every rank.
SPLITS = {
    "self_attn.q_proj": (0, "heads"),
    "self_attn.k_proj": (0, "kv_heads"),
    "self_attn.v_proj": (0, "kv_heads"),
    "self_attn.o_proj": (1, "heads"),
    "mlp.gate_proj": (0, "d_ff"),
    "mlp.up_proj": (0, "d_ff"),
    "mlp.down_proj": (1, "d_ff"),
    "embed_tokens": (0, "vocab"),
    "lm_head": (0, "vocab"),
}


class RowParallel(nn.Module):
    """A matrix split by its inputs: each rank multiplies its slice of x by its columns, and the sum is the product.

    `part` may be any module that can replace `Linear`. A bias is added once: the other ranks have zeros in its place.
    """

    def __init__(self, part: nn.Module, group: Group) -> None:
        super().__init__()
        self.part = part
        self.group = group

    @property
    def weight(self) -> Tensor:
        """This rank's columns [out, in / ranks]."""
        return self.part.weight  # type: ignore[return-value]

    @property
    def bias(self) -> Tensor | None:
        return self.part.bias  # type: ignore[return-value]

    def forward(self, x: Tensor) -> Tensor:
        """x [n, in / ranks], this rank's slice -> [n, out], the same on every rank."""
        product = self.part(x)
        dist.all_reduce(product, group=self.group)
        return product


class GatheredHead(nn.Module):
    """A matrix split by its outputs whose whole result every rank needs: the output head, for sampling."""

    def __init__(self, part: nn.Module, group: Group) -> None:
        super().__init__()
        self.part = part
        self.group = group

    @property
    def weight(self) -> Tensor:
        """This rank's rows [out / ranks, in]."""
        return self.part.weight  # type: ignore[return-value]

    def forward(self, x: Tensor) -> Tensor:
        """x [n, in], the same on every rank -> [n, out], the same on every rank."""
        own = self.part(x).contiguous()
        parts = [torch.empty_like(own) for _ in range(dist.get_world_size(self.group))]
        dist.all_gather(parts, own, group=self.group)
        return torch.cat(parts, dim=-1)


class ParallelLlama(Llama):
    """This rank's part of the decoder of `config`. Its own `config` has the rank's shape, from which caches are made.

    Every rank of `group` makes one and calls it with the same batch. `whole` is the config of the whole model.
    ValueError names a dimension that does not divide over the ranks.
    """

    def __init__(
        self,
        config: ModelConfig,
        dtype: torch.dtype = torch.float32,
        device: torch.device | str = "cpu",
        group: Group = None,
    ) -> None:
        n_ranks = dist.get_world_size(group)
        super().__init__(rank_config(config, n_ranks), dtype, device)
        self.whole = config
        self.group = group
        self.rank, self.n_ranks = dist.get_rank(group), n_ranks
        self.vocab = rank_slices(config, self.rank, n_ranks).vocab
        for layer in self.layers:
            assert isinstance(layer, Layer)
            for name in ("wo", "w_down"):
                layer.register_module(name, RowParallel(layer.get_submodule(name), group))
        if self.vocab_is_split:
            self.register_module("head", GatheredHead(self.head, group))

    @property
    def vocab_is_split(self) -> bool:
        return len(self.vocab) < self.whole.vocab_size

    def embedded(self, tokens: Tensor) -> Tensor:
        """Embeddings [n, d_model] of token ids: the sum of what each rank finds in its rows of the vocabulary."""
        if not self.vocab_is_split:
            return super().embedded(tokens)
        row = tokens - self.vocab.start
        elsewhere = (row < 0) | (row >= len(self.vocab))
        x = F.embedding(row.masked_fill(elsewhere, 0), self.embed).masked_fill(elsewhere.unsqueeze(1), 0)
        dist.all_reduce(x, group=self.group)
        return x


def slices(
    tensors: Iterable[tuple[str, Tensor]], config: ModelConfig, rank: int, n_ranks: int
) -> Iterator[tuple[str, Tensor]]:
    """One rank's slice of each tensor of the whole model `config`, one at a time, under the same names (no copies).

    WeightsError if a dimension that is to be split differs from the model's.
    """
    mine = rank_slices(config, rank, n_ranks)
    rows = {  # for each split dimension: this rank's first row, number of rows, and rows of the whole
        "heads": (mine.heads, config.n_heads, config.head_dim),
        "kv_heads": (mine.kv_heads, config.n_kv_heads, config.head_dim),
        "d_ff": (mine.d_ff, config.d_ff, 1),
        "vocab": (mine.vocab, config.vocab_size, 1),
    }
    for name, value in tensors:
        stem = name.rpartition(".")[0]  # without .weight or .bias
        split = next((SPLITS[ending] for ending in SPLITS if stem.endswith(ending)), None)
        if split is not None and split[0] == 1 and name.endswith(".bias"):
            value = value if rank == 0 else torch.zeros_like(value)
        elif split is not None:
            dim, counted = split
            own, n_whole, unit = rows[counted]
            if value.dim() <= dim or value.shape[dim] != n_whole * unit:
                found = list(value.shape)
                raise WeightsError(f"tensor {name}: expected {n_whole * unit} along dimension {dim}, found {found}")
            value = value.narrow(dim, own.start * unit, len(own) * unit)
        yield name, value


def fill(model: ParallelLlama, tensors: Iterable[tuple[str, Tensor]], path: Path) -> None:
    """Copies this rank's slices of the whole model's tensors into `model`, holding one whole tensor at a time.

    `path` is for the error if they do not fit together.
    """
    weights.fill(model, slices(tensors, model.whole, model.rank, model.n_ranks), path)


def load(
    source: str | Path = weights.DEFAULT_MODEL,
    dtype: torch.dtype = torch.float32,
    device: torch.device | str = "cpu",
    group: Group = None,
    max_context: int | None = None,
) -> weights.Loaded:
    """`weights.load` for a model split over the ranks of `group`: every rank calls it and gets its own part."""
    path = weights.resolve(source)
    config, tensors = weights.read(path)
    if source == weights.DEFAULT_MODEL:
        check_shape(config, MODELS[weights.DEFAULT_MODEL], path)
    model = ParallelLlama(limited(config, max_context), dtype, device, group)
    fill(model, tensors, path)
    return weights.Loaded(model, weights.load_tokenizer(path))
