"""The public path of `autograder.run.execute`."""

from autograder.run.execute import SandboxedExecute

__all__ = ["SandboxedExecute"]
