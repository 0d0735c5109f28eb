"""Helpers that several rooms share: command lines, the type of a clock, optional packages, errors."""
