"""The public path of `autograder.batch.export`."""

from autograder.batch.export import Canvas, Grades, Moodle, PerQuestion

__all__ = ["Canvas", "Grades", "Moodle", "PerQuestion"]
