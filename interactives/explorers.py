"""The figures with sliders, one class each: its traits are what it starts with, and follow what the learner does.

A value outside a trait's range raises traitlets.TraitError that names the trait and the range.
"""

import traitlets

from interactives.base import Explorer, GpuExplorer, script
from reference_impl.config import MODELS

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
    """Decode and prefill under a GPU's roof: FLOPs per byte, and what binds."""

    _figure = "roofline"
    _esm = script("roofline")
    model = _model()
    weight_bits = _state(traitlets.Enum(BITS, 16))
    batch = _whole(8, 1, 1024)  # sequences
    context = _whole(2048, 64, 131_072)  # tokens of each sequence
    prompt = _whole(2000, 1, 32_768)  # tokens of the prefill


FIGURES = {figure._figure: figure for figure in (RooflineExplorer,)}
