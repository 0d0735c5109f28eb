"""The one error of ours that several modules raise. Everything else uses Python's own."""


class WeightsError(ValueError):
    """A model's file or folder cannot be used; the message names it, what was expected and what was found."""
