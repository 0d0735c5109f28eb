"""One model on one kind of GPU: all bounds of `arithmetic` for it, and which limit binds.

A step has three limits. It must read its bytes (bandwidth), compute its FLOPs (arithmetic), and have its weights and
caches in memory (capacity). Linear layers and attention run one after the other, so each has a roofline of its own
(Williams, Waterman and Patterson, 2009) and their times add up: reading KV caches hides no arithmetic of the linear
layers. Of several GPUs each holds and does an equal share; communication comes on top. Standard library only.
"""

from collections.abc import Callable
from dataclasses import dataclass

from reference_impl.bounds import arithmetic
from reference_impl.bounds.config import ModelConfig
from reference_impl.bounds.hardware import Gpu


@dataclass(frozen=True)
class Operators:
    """All operators of one kind in a pass. They read while they compute, so the slower of the two sets their time."""

    memory_seconds: float  # to read their bytes
    compute_seconds: float  # to compute their FLOPs

    @property
    def seconds(self) -> float:
        return max(self.memory_seconds, self.compute_seconds)

    @property
    def compute_bound(self) -> bool:
        return self.compute_seconds > self.memory_seconds


@dataclass(frozen=True)
class Step:
    """One forward pass of a batch: its linear layers, then its attention."""

    linear: Operators
    attention: Operators
    n_tokens: int  # that all sequences together get from it

    @property
    def seconds(self) -> float:
        return self.linear.seconds + self.attention.seconds

    @property
    def memory_seconds(self) -> float:
        """Seconds that all bytes take."""
        return self.linear.memory_seconds + self.attention.memory_seconds

    @property
    def compute_seconds(self) -> float:
        """Seconds that all FLOPs take."""
        return self.linear.compute_seconds + self.attention.compute_seconds

    @property
    def tokens_per_second(self) -> float:
        return self.n_tokens / self.seconds

    @property
    def limit(self) -> str:
        """Which of the two takes the step as a whole longer. Its linear layers can be compute-bound earlier."""
        return "bandwidth" if self.memory_seconds >= self.compute_seconds else "arithmetic"


@dataclass(frozen=True)
class Deployment:
    """Weights of `weight_bits` (with a 16-bit scale per group, if there is a group size), KV values of `kv_bits`."""

    model: ModelConfig
    gpu: Gpu
    weight_bits: float = 16
    group_size: int | None = None
    kv_bits: float = 16
    n_gpus: int = 1

    @property
    def weight_bytes(self) -> float:
        return arithmetic.weight_bytes(self.model.n_params, self.weight_bits, self.group_size)

    @property
    def kv_bytes_per_token(self) -> float:
        return self.model.kv_bytes_per_token(self.kv_bits / 8)

    @property
    def memory_bytes(self) -> float:
        return self.gpu.memory_bytes * self.n_gpus

    @property
    def weights_fit(self) -> bool:
        return self.weight_bytes <= self.memory_bytes

    def used_bytes(self, batch: int, context: int) -> float:
        """Weights and KV caches of `batch` sequences of `context` tokens: what a step reads, and what must fit."""
        return self.weight_bytes + batch * context * self.kv_bytes_per_token

    def max_sequences(self, context: int) -> int:
        """Whole sequences of `context` tokens that fit beside the weights; 0 if the weights do not fit."""
        if not self.weights_fit:
            return 0
        return arithmetic.max_sequences(self.memory_bytes, self.weight_bytes, self.kv_bytes_per_token, context)

    def step(self, batch: int, context: int, new_tokens: int = 1, input_embedding: bool = True) -> Step:
        """A pass over `new_tokens` of each sequence: 1 is plain decode, k + 1 the verification of k drafted tokens.

        `input_embedding=False` leaves an untied input table out of the bytes: only one row a token is looked up there.
        """
        params = self.model.n_params if input_embedding else self.model.params_read_per_step
        rows = batch * new_tokens
        return Step(
            linear=self._operators(
                arithmetic.weight_bytes(params, self.weight_bits, self.group_size), 2 * self.model.n_params * rows
            ),
            attention=self._operators(
                batch * context * self.kv_bytes_per_token, rows * context * self._attention_flops_per_context_token
            ),
            n_tokens=batch,
        )

    def prefill_seconds(self, n_tokens: int, utilization: float = 0.5, attention: bool = True) -> float:
        """Time to first token of a prompt at this share of the peak, with or without causal attention.

        A prompt too short to keep the arithmetic busy takes as long as reading the weights.
        """
        model = self.model
        linear = self._operators(self.weight_bytes, arithmetic.prefill_flops(model.n_params, n_tokens), utilization)
        if not attention:
            return linear.seconds
        flops = arithmetic.attention_flops(model.n_layers, model.n_heads, model.head_dim, n_tokens)
        return linear.seconds + self._operators(n_tokens * self.kv_bytes_per_token, flops, utilization).seconds

    def intensity(self, batch: int, context: int) -> float:
        """FLOP per byte of a decode step as a whole, attention included."""
        return batch * self._flops_per_token(context) / self.used_bytes(batch, context)

    @property
    def compute_bound_batch(self) -> int:
        """The smallest batch at which the linear layers of a decode step are compute-bound, even if it does not fit."""
        return arithmetic.compute_bound_batch(self.model.n_params, self.weight_bytes, self.gpu.ridge)

    def crossing_batch(self, context: int) -> int | None:
        """The smallest batch whose step as a whole computes longer than it reads, even if it does not fit."""
        kv_bytes = context * self.kv_bytes_per_token
        return arithmetic.crossing_batch(self._flops_per_token(context), kv_bytes, self.weight_bytes, self.gpu.ridge)

    def crossing_context(self) -> float:
        """Tokens of context from which on no step as a whole computes longer than it reads (attention included)."""
        attention = self._attention_flops_per_context_token
        return arithmetic.crossing_context(self.model.n_params, self.kv_bytes_per_token, self.gpu.ridge, attention)

    def limit(self, batch: int, context: int) -> str:
        """What binds a decode step: "capacity" where the batch does not fit, else "bandwidth" or "arithmetic"."""
        if self.used_bytes(batch, context) > self.memory_bytes:
            return "capacity"
        return self.step(batch, context).limit

    def verify_cost(self, batch: int, context: int) -> Callable[[int], float]:
        """k -> cost of checking k drafted tokens a sequence, in plain decode steps.

        It is 1 until the linear layers are compute-bound: with 16-bit weights, until batch times k + 1 is the ridge.
        """
        plain = self.step(batch, context).seconds
        return lambda k: self.step(batch, context, new_tokens=k + 1).seconds / plain

    def _operators(self, n_bytes: float, flops: float, utilization: float = 1.0) -> Operators:
        return Operators(
            memory_seconds=n_bytes / (self.gpu.bandwidth * self.n_gpus),
            compute_seconds=flops / (self.gpu.peak_flops * utilization * self.n_gpus),
        )

    @property
    def _attention_flops_per_context_token(self) -> int:
        return 4 * self.model.n_layers * self.model.n_heads * self.model.head_dim

    def _flops_per_token(self, context: int) -> float:
        return 2 * self.model.n_params + context * self._attention_flops_per_context_token
