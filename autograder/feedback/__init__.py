"""What a learner is told: sentences, hints, pages.

`autograder.feedback.Feedback`, which course configurations name, is loaded when it is asked for: it imports nbconvert.
"""

from typing import Any


def __getattr__(name: str) -> Any:
    if name != "Feedback":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from autograder.feedback.pages import Feedback

    return Feedback
