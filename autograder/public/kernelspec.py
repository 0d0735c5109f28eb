"""The public path of `autograder.course.kernelspec`."""

from autograder.course.kernelspec import ensure

__all__ = ["ensure"]
