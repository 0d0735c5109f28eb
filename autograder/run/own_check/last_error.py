"""What a kernel remembers of its last error: which lines of which cells were being run, and with what arguments.

The learner's own check sends this file's text into the kernel after a cell has failed, so it imports nothing of ours.
Where a function was called comes from the traceback's positions: they tell the call itself, not only its line.
"""

import ast
import json
import linecache
import sys
import types
from typing import Any

_SHOWN = 400  # characters
# What can be evaluated once more without doing anything.
_SAFE = (
    *(ast.Name, ast.Load, ast.Constant, ast.Tuple, ast.List, ast.Starred, ast.UnaryOp, ast.BinOp),
    *(ast.unaryop, ast.operator, ast.Attribute, ast.Subscript, ast.Slice),
)


def report() -> str:
    """JSON: the error's `type`; its `frames` in cells, outermost first; of a SyntaxError `syntax`: line, code, text."""
    error = getattr(sys, "last_value", None)
    frames = []
    trace = getattr(error, "__traceback__", None)
    while trace is not None:
        code = trace.tb_frame.f_code
        if "ipykernel_" in code.co_filename:
            lines = linecache.getlines(code.co_filename)
            line = trace.tb_lineno or 0
            frames.append(
                {
                    "cell": "".join(lines),
                    "function": code.co_qualname.replace("<locals>.", ""),
                    "line": line,
                    "code": lines[line - 1].strip()[:_SHOWN] if 0 < line <= len(lines) else "",
                    "input": _arguments(trace, "".join(lines)),
                }
            )
        trace = trace.tb_next
    found: dict[str, object] = {"type": type(error).__name__, "frames": frames}
    if isinstance(error, SyntaxError) and "ipykernel_" in str(error.filename):
        found["syntax"] = [error.lineno or 0, str(error.text or "").strip()[:_SHOWN], str(error.msg)]
    return json.dumps(found)


def _arguments(trace: types.TracebackType, source: str) -> str:
    """The arguments of the call that this frame was in, as they are now; empty where they cannot be told."""
    try:
        line, last, column, end = list(trace.tb_frame.f_code.co_positions())[trace.tb_lasti // 2]
        call = next(
            node
            for node in ast.walk(ast.parse(source))
            if isinstance(node, ast.Call)
            and (node.end_lineno, node.end_col_offset) == (last, end)
            and (node.lineno, node.col_offset) == (line, column)
        )
        given = [(f"{keyword.arg}=" if keyword.arg else "**", keyword.value) for keyword in call.keywords]
        return ", ".join(
            name + _value(node, trace.tb_frame) for name, node in [*(("", node) for node in call.args), *given]
        )[:_SHOWN]
    except Exception:  # a cell with magics, no position, a value that cannot be had: then nothing is said of it
        return ""


def _value(node: ast.expr, frame: types.FrameType) -> str:
    if not all(isinstance(part, _SAFE) for part in ast.walk(node)):
        return ast.unparse(node)
    if isinstance(node, ast.Starred):
        return ", ".join(_show(item) for item in _eval(node.value, frame))
    return _show(_eval(node, frame))


def _eval(node: ast.expr, frame: types.FrameType) -> Any:
    return eval(compile(ast.Expression(node), "<arguments>", "eval"), frame.f_globals, dict(frame.f_locals))


def _show(value: object) -> str:
    show = getattr(sys.modules.get("autograder.checks"), "_show", repr)  # NumPy arrays and long values in short
    return str(show(value))
