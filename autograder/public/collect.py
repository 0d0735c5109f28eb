"""The public path of `autograder.intake.collect`."""

from autograder.intake.collect import use

__all__ = ["use"]
