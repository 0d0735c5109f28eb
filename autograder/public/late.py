"""The public path of `autograder.batch.late`."""

from autograder.batch.late import LatePolicy

__all__ = ["LatePolicy"]
