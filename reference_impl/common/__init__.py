"""Helpers that several rooms share: command lines, whole files, the type of a clock, optional packages, errors."""
