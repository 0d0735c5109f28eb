"""The public path of `autograder.feedback.sanitize`."""

from autograder.feedback.sanitize import Sanitize, markdown_html

__all__ = ["Sanitize", "markdown_html"]
