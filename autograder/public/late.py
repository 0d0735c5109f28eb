"""The public path of `autograder.course.late`."""

from autograder.course.late import LatePolicy

__all__ = ["LatePolicy"]
