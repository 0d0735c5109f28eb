"""An error that several modules raise. All other errors are Python's own."""


class WeightsError(ValueError):
    """A model's file or folder cannot be used. The message names it, and what was expected and found."""
