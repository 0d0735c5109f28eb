"""Run a learner's program as `python program.py` does, inside the browser's Python.

The worker calls `run`, which never raises: an error comes back as Python's own traceback, without the frames that
belong to the page. The standard streams are those of the interpreter; the worker feeds and reads their file
descriptors.
"""

import atexit
import builtins
import contextlib
import linecache
import random
import sys
import traceback
import types

NAME = "program.py"

sys.stdout.reconfigure(line_buffering=True)  # type: ignore[union-attr]  # a program that hangs has shown the lines it printed before


def told(error: BaseException) -> str:
    """Return Python's traceback from the learner's first frame on."""
    story = traceback.TracebackException.from_exception(error)
    seen = set()
    part: traceback.TracebackException | None = story
    while part is not None and id(part) not in seen:
        seen.add(id(part))
        frames = list(part.stack)
        mine = next((n for n, frame in enumerate(frames) if frame.filename == NAME), len(frames))
        part.stack = traceback.StackSummary.from_list(frames[mine:])
        part = part.__cause__ or part.__context__
    return "".join(story.format())


def run(source: str) -> tuple[str | None, bool]:
    """Run a program; return its error, if any, and whether it ran out of memory."""
    main = types.ModuleType("__main__")
    main.__dict__.update(__file__=NAME, __builtins__=builtins)
    linecache.cache[NAME] = (len(source), None, source.splitlines(keepends=True), NAME)
    sys.argv, sys.modules["__main__"] = [NAME], main
    random.seed()  # every run starts from the same memory, and must not draw the same numbers
    error, memory = None, False
    try:
        # Compiled from bytes, as a file is: a byte-order mark at the beginning is no part of the program.
        exec(compile(source.encode("utf-8", "surrogatepass"), NAME, "exec", dont_inherit=True), main.__dict__)
    except SystemExit as stop:
        error = None if stop.code in (None, 0) else f"SystemExit: {stop.code}\n"
    except BaseException as raised:
        error, memory = told(raised), isinstance(raised, MemoryError)
    finally:
        atexit._run_exitfuncs()
        for stream in (sys.stdout, sys.stderr, sys.__stdout__, sys.__stderr__):
            with contextlib.suppress(AttributeError, OSError, ValueError):  # closed or replaced by the program
                stream.flush()  # type: ignore[union-attr]
    return error, memory
