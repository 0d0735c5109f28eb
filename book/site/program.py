"""Runs a learner's program as `python program.py` would, with standard input from a text and a capped output.

`run` is called in the browser's worker. It never raises: what went wrong comes back as Python's own traceback, without
the frames that are ours.
"""

import builtins
import io
import linecache
import sys
import time
import traceback
import types

NAME = "program.py"


class Out(io.TextIOBase):
    """Collects text and sends it at most every 50 ms: a message for each print would be slower than the program."""

    def __init__(self, stream, send, room):
        super().__init__()
        self.stream, self.send, self.room = stream, send, room
        self.parts, self.sent = [], time.perf_counter()

    encoding = "utf-8"

    def writable(self):
        return True

    def write(self, text):
        if not isinstance(text, str):
            raise TypeError(f"write() argument must be str, not {type(text).__name__}")
        if self.room > 0:
            self.parts.append(text[: self.room])
            self.room -= len(text)
            if time.perf_counter() - self.sent > 0.05:
                self.pass_on()
        return len(text)

    def pass_on(self):
        if self.parts:
            self.send(self.stream, "".join(self.parts))
            self.parts.clear()
        self.sent = time.perf_counter()


def told(error):
    """Python's traceback from the learner's first frame on."""
    story = traceback.TracebackException.from_exception(error)
    seen = set()
    part = story
    while part is not None and id(part) not in seen:
        seen.add(id(part))
        frames = list(part.stack)
        mine = next((n for n, frame in enumerate(frames) if frame.filename == NAME), len(frames))
        part.stack = traceback.StackSummary.from_list(frames[mine:])
        part = part.__cause__ or part.__context__
    return "".join(story.format())


def run(source, text, send, room):
    """(error or None, out of memory?, output cut off?); `send(stream, text)` gets what the program prints."""
    out, err = Out("output", send, room), Out("errors", send, room)
    before = sys.stdin, sys.stdout, sys.stderr, sys.argv, sys.modules["__main__"], sys.getrecursionlimit()
    main = types.ModuleType("__main__")
    main.__dict__.update(__file__=NAME, __builtins__=builtins)
    linecache.cache[NAME] = (len(source), None, source.splitlines(keepends=True), NAME)
    error, memory = None, False
    try:
        sys.stdin = io.TextIOWrapper(io.BytesIO(text.encode()), encoding="utf-8")
        sys.stdout, sys.stderr, sys.argv, sys.modules["__main__"] = out, err, [NAME], main
        exec(compile(source, NAME, "exec", dont_inherit=True), main.__dict__)
    except SystemExit as stop:
        if stop.code not in (None, 0):
            error = f"SystemExit: {stop.code}\n"
    except BaseException as raised:
        error, memory = told(raised), isinstance(raised, MemoryError)
    finally:
        sys.stdin, sys.stdout, sys.stderr, sys.argv, sys.modules["__main__"], limit = before
        sys.setrecursionlimit(limit)
        out.pass_on()
        err.pass_on()
    return error, memory, out.room < 0
