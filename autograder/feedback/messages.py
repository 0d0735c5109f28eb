"""How a failure is told to a learner: the same sentences in a graded notebook and in the learner's own check."""

from __future__ import annotations

import ast
import re

from autograder.intake.text import clip

_NAME = 80  # bytes of a name


def learners_error(name: str, text: str, what: str, line: object, code: str) -> str:
    """`what`, a function of the learner's, raised the error `name` with `text`, in `line` of its cell."""
    if name == "NotImplementedError" and not text:
        return not_written(clip(what, _NAME))
    at = f" (line {line} of its cell: {clip(code, 200)})" if type(line) is int and code else ""
    return f"{clip(what, _NAME)} raised {name}{': ' if text else ''}{text}{at}"


def not_written(what: str) -> str:
    """`what` is as it was handed out."""
    return f"not written yet: {what} still holds `raise NotImplementedError()`"


def missing_name(text: str) -> str:
    """The name that a NameError's text says is missing; empty if it says no such thing."""
    found = re.match(r"name '(\w+)' is not defined", text)
    return found[1] if found else ""


def does_not_hold(source: str, line: int) -> str:
    """The assertion without a text of its own that stands in this line of a test cell; empty if there is none."""
    shown = ast.get_source_segment(source, _statement(source, line))
    return f"this does not hold: {shown}" if shown else ""


def could_not_go_on(text: str, where: str) -> str:
    """A test failed with an error of its own in `where`, for example "line 7 of the test"."""
    return f"{text or 'it failed'} (in {where}, which could not go on with what came back)"


def _statement(source: str, line: int) -> ast.AST:
    """The innermost statement on a line."""
    tree = ast.parse(source)
    here = [
        node for node in ast.walk(tree) if isinstance(node, ast.stmt) and node.lineno <= line <= (node.end_lineno or 0)
    ]
    return here[-1] if here else tree
