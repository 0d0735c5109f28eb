"""Interactive figures that the lessons and the site share; every number in them comes from `reference_impl`.

    from interactives import RooflineExplorer
    RooflineExplorer(batch=8, context=2048)      # the last line of a cell

A class is imported when it is asked for.
"""

from importlib import import_module
from typing import Any

_HOMES = {
    "Quiz": "questions",
    "Predict": "questions",
    "OpeningQuestions": "questions",
    "ClosingQuestions": "questions",
    "BatchingExplorer": "explorers",
    "BatchingTimeline": "explorers",
    "DraftLengthExplorer": "explorers",
    "GroupExplorer": "explorers",
    "PagedCacheExplorer": "explorers",
    "QuantizationExplorer": "explorers",
    "RooflineExplorer": "explorers",
    "SizingCalculator": "explorers",
    "SpeculativeRound": "explorers",
}
__all__ = list(_HOMES)


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'interactives' has no attribute {name!r}")
    return getattr(import_module(f"interactives.{_HOMES[name]}"), name)
