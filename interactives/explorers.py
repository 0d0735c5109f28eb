"""The figures with sliders, one class each: its traits are what it starts with, and follow what the learner does.

A value outside a trait's range raises traitlets.TraitError that names the trait and the range.
"""

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import traitlets

from interactives.base import Explorer, GpuExplorer, script
from reference_impl.bounds.config import MODELS

if TYPE_CHECKING:
    from interactives.group_errors import GroupPoint

BITS = [16, 8, 4]


def _state(trait: traitlets.TraitType) -> traitlets.TraitType:
    return trait.tag(sync=True, state=True)


def _model(default: str = "llama-3-8b") -> traitlets.TraitType:
    return _state(traitlets.Enum(list(MODELS), default))


def _whole(default: int, low: int, high: int) -> traitlets.TraitType:
    return _state(traitlets.Int(default, min=low, max=high))


def _number(default: float, low: float, high: float) -> traitlets.TraitType:
    return _state(traitlets.Float(default, min=low, max=high))


class RooflineExplorer(GpuExplorer):
    """Decode and prefill under a GPU's roof: FLOPs per byte, and whether bytes or FLOPs set the time."""

    _figure = "roofline"
    _esm = script("roofline")
    model = _model()
    weight_bits = _state(traitlets.Enum(BITS, 16))
    batch = _whole(8, 1, 1024)  # sequences
    context = _whole(2048, 64, 131_072)  # tokens of each sequence
    prompt = _whole(2000, 1, 32_768)  # tokens of the prefill


class BatchingExplorer(GpuExplorer):
    """Throughput and latency of a growing batch, the memory wall, a limit on the step; a guess is drawn first."""

    _figure = "batching"
    _esm = script("batching")
    model = _model()
    weight_bits = _state(traitlets.Enum(BITS, 16))
    context = _whole(2048, 64, 131_072)  # tokens of each sequence
    batch = _whole(32, 1, 512)  # sequences
    slo = _number(10.0, 1, 100)  # milliseconds that a step may take


class BatchingTimeline(GpuExplorer):
    """One seeded workload under static batching, continuous batching, and continuous batching with chunked prompts."""

    _figure = "timeline"
    _esm = script("timeline")
    model = _model()
    seed = _whole(0, 0, 7)  # which workload
    slots = _whole(4, 1, 10)
    budget = _whole(256, 16, 2048)  # tokens of a pass, where prompts are cut


class PagedCacheExplorer(Explorer):
    """The same sequences in a contiguous and in a paged cache; forks, and copy on write step by step."""

    _figure = "paged"
    _esm = script("paged")
    model = _model()
    lengths = _state(traitlets.List(traitlets.Int(min=1, max=512), [37, 120, 64, 9], minlen=1, maxlen=8))  # tokens
    block_size = _whole(16, 1, 64)  # tokens
    reserved = _whole(256, 16, 1024)  # tokens of a contiguous slot
    prefix = _whole(0, 0, 256)  # tokens that all sequences begin with
    events = _state(traitlets.List(traitlets.Unicode()))  # "fork A", "write A"


class QuantizationExplorer(Explorer):
    """Weights on their grid: one outlier to drag, bits, groups.

    `weights`: 4 to 256 numbers of your own instead; the largest of them is the outlier, at its own value unless
    `outlier` is given.
    """

    _figure = "quantization"
    _esm = script("quantization")
    outlier = _state(traitlets.Float(8.0))
    bits = _whole(4, 2, 8)
    group = _whole(64, 1, 256)  # weights that share a scale: 4, 8, 16, 32, 64, 128, or all
    weights = _state(traitlets.List(traitlets.Float()))

    def __init__(self, **settings: Any) -> None:
        if "weights" in settings:
            settings["weights"] = [float(weight) for weight in settings["weights"]]
            if settings["weights"]:
                settings.setdefault("outlier", max(settings["weights"], key=abs))
                settings.setdefault("group", len(settings["weights"]))
        super().__init__(**settings)

    @traitlets.validate("weights")
    def _some_weights(self, proposal: traitlets.Bunch) -> list[float]:
        weights = proposal["value"]
        if weights and not 4 <= len(weights) <= 256:
            raise traitlets.TraitError(f"weights: 4 to 256 numbers, got {len(weights)}")
        if not all(math.isfinite(weight) for weight in weights):
            raise traitlets.TraitError("weights must be finite")
        return weights


class GroupExplorer(Explorer):
    """Cost and error of each group size, measured beforehand: `points` is what `group_errors.sweep` returned.

    `start`: the group size shown first. Raises ValueError where it was not measured.
    """

    _figure = "groups"
    _esm = script("groups")
    points = _state(traitlets.List(traitlets.Dict()))
    group = _state(traitlets.Int(32))

    def __init__(self, points: Sequence["GroupPoint"], start: int = 32) -> None:
        from interactives.group_errors import table_html  # and matplotlib with it: not for every figure

        measured = sorted(points, key=lambda point: point.group_size)
        if start not in [point.group_size for point in measured]:
            sizes = [point.group_size for point in measured]
            raise ValueError(f"group size {start} was not measured; measured: {sizes}")
        rows = [
            {
                "size": point.group_size,
                "bits": point.bits,
                "cost": point.bits_per_weight,
                "error": point.error,
                "expected": point.expected,
                "shares": [round(share, 6) for share in point.level_shares],
                "strip": [round(error, 4) for error in point.strip_errors],
            }
            for point in measured
        ]
        self._table = table_html(measured)
        super().__init__(points=rows, group=start)

    def paper(self) -> str:
        return self._table


class SpeculativeRound(Explorer):
    """One round of speculative decoding, predicted before each reveal; then the first token's histogram."""

    _figure = "speculative"
    _esm = script("speculative")
    rule = _state(traitlets.Enum(["exact", "greedy"], "exact"))
    k = _whole(3, 1, 4)  # drafted tokens
    closeness = _whole(0, 0, 100)  # percent of the way from the draft's own distribution to the target's
    seed = _whole(1, 1, 999)  # which round


class DraftLengthExplorer(GpuExplorer):
    """Speed-up of speculative decoding against the draft length, the best one marked."""

    _figure = "draft"
    _esm = script("draft")
    model = _model()
    alpha = _number(0.8, 0, 1)  # probability that a drafted token is accepted
    cost = _number(0.1, 0, 1)  # of a draft pass, in target passes
    batch = _whole(1, 1, 1024)  # sequences
    context = _whole(2048, 64, 131_072)  # tokens of each sequence


class SizingCalculator(GpuExplorer):
    """A bill of bytes: weights, scales, KV caches, what is kept free; the GPUs it needs and the fastest step."""

    _figure = "sizing"
    _esm = script("sizing")
    model = _model("llama-3-70b")
    weight_bits = _state(traitlets.Enum(BITS, 16))
    group = _state(traitlets.Enum([0, 32, 64, 128], 0))  # weights that share a 16-bit scale; 0: no scales
    kv_bits = _state(traitlets.Enum([16, 8], 16))
    sequences = _whole(16, 1, 1024)
    context = _whole(8192, 64, 131_072)  # tokens of each sequence
    reserve = _whole(10, 0, 50)  # percent of each GPU's memory
    n_gpus = _whole(2, 1, 16)


_ALL = (
    RooflineExplorer,
    BatchingExplorer,
    PagedCacheExplorer,
    BatchingTimeline,
    QuantizationExplorer,
    SpeculativeRound,
    DraftLengthExplorer,
    SizingCalculator,
)
FIGURES = {figure._figure: figure for figure in _ALL}
