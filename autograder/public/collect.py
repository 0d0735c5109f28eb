"""The public path of `autograder.batch.plugins`."""

from autograder.batch.plugins import use

__all__ = ["use"]
