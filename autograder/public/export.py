"""The public path of `autograder.batch.export`."""

from autograder.batch.export import Canvas, Moodle, PerQuestion

__all__ = ["Canvas", "Moodle", "PerQuestion"]
