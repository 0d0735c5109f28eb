"""The process that runs an assignment's test cells; the learner's code runs elsewhere, and answers through proxies.

A test cell is ordinary Python. Before it runs, each name that it uses and that is the learner's becomes a proxy
(remote/proxy.py). What comes of it is a dictionary: what may be shown, the value of its last expression, its error in
words, and for a check between hidden-test markers also the words that a learner may read (hidden_checks.py).
"""

from __future__ import annotations

import ast
import builtins
import contextlib
import io
import socket
import sys
import traceback
from types import CodeType, FrameType, FunctionType
from typing import Any

from autograder import checks
from autograder.feedback import hidden_checks, messages
from autograder.intake.text import clip
from autograder.run.remote.link import KernelLine, Link, LinkError
from autograder.run.remote.proxy import Kernel, NoAnswerError, RemoteError

FILE = "<test cell>"
_NOT_SHOWN = "a condition that is not shown does not hold"
_TEXT = 8000  # bytes of a message, and of what was printed
# Errors whose text holds no value of the test.
_TELLING = (TypeError, AttributeError, IndexError, NameError, ZeroDivisionError, ImportError, SyntaxError)


class Runner:
    """Runs cells one after another in one namespace, as a notebook does."""

    def __init__(self, link: Link) -> None:
        self._link = link
        self._line: KernelLine | None = None
        self._no_line = ""  # why there is none
        self._questions = 0
        self._kernel = Kernel(self._exchange)
        self._names: dict[str, Any] = {"__name__": "__main__", "__builtins__": builtins}
        self._borrowed: dict[str, Any] = {}
        self._hidden: list[tuple[int, int]] = []
        self._shown = _Printed(self._in_hidden)
        self._used: set[str] = set()

    def run(self, message: dict[str, Any]) -> dict[str, Any]:
        """`source`: the cell; `learners`: names that the learner's cells define; `hidden`: ranges of its lines; `line`:
        whether a new line to the kernel follows; `words`: why there is none, if so; `course`: the course's own answers
        before this cell, as code; `stand_ins`: names of functions in them that stand in for the learner's."""
        if message["line"]:
            self._take_line(KernelLine(socket.socket(fileno=self._link.receive_handle()), self._link))
        self._no_line, self._questions = message["words"], 0
        self._hidden = [(first, last) for first, last in message["hidden"]]
        self._shown = _Printed(self._in_hidden)
        checks.think_of("")
        result: dict[str, Any] = {"type": "done", "error": None, "value": None}
        refused: dict[str, str] = {}
        source = message["source"]
        try:
            with contextlib.redirect_stdout(self._shown), contextlib.redirect_stderr(io.StringIO()):
                body, last = _compile(source)
                if message["stand_ins"]:
                    self._kernel.replace(self._course(message["course"], message["stand_ins"]))
                refused = self._borrow(source, set(message["learners"]))
                exec(body, self._names)
                if last is not None:
                    result["value"] = _plain_value(eval(last, self._names))
        except LinkError:
            raise
        except BaseException as error:
            result["error"] = self._words(error, source, refused)
            result["trace"] = "".join(traceback.format_exception(error))[-_TEXT:]
        if message["stand_ins"]:
            with contextlib.suppress(NoAnswerError, RemoteError):  # a kernel that was lost has put them back
                self._kernel.replace({})
        result["printed"], result["questions"] = self._shown.text(), self._questions
        return result

    def _course(self, answers: list[str], wanted: list[str]) -> dict[str, Any]:
        """Functions of the course's own answers, which call one another and nothing of the learner's."""
        names = {name: value for name, value in self._names.items() if name not in self._borrowed}
        for answer in answers:
            exec(answer, names)
        return {name: names[name] for name in wanted if isinstance(names[name], FunctionType)}

    def _borrow(self, source: str, learners: set[str]) -> dict[str, str]:
        """Fetch the learner's names that the cell uses. Names of the tests' own come first, but for `learners`."""
        for name, value in self._borrowed.items():
            if self._names.get(name) is value:
                del self._names[name]
        # A helper that an earlier cell defined may use the learner's names too.
        self._used |= {node.id for node in ast.walk(ast.parse(source)) if isinstance(node, ast.Name)}
        wanted = {
            name
            for name in self._used
            if name in learners or (name not in self._names and not hasattr(builtins, name) and name[:2] != "__")
        }
        for name in wanted:
            self._names.pop(name, None)
        self._borrowed, refused = self._kernel.names(wanted) if wanted else ({}, {})
        self._names.update(self._borrowed)
        return refused

    def _take_line(self, line: KernelLine | None) -> None:
        if self._line is not None:
            self._line.close()
        self._line = line

    def _exchange(self, text: str) -> str:
        self._questions += 1
        if self._no_line or self._line is None:
            raise NoAnswerError(self._no_line or "there is no kernel")
        try:
            printed, answer = self._line.ask(text)
        except LinkError:
            self._take_line(None)
            self._link.send({"type": "lost"})
            while (message := self._link.receive())["type"] != "words":
                pass
            self._no_line = message["words"]
            raise NoAnswerError(self._no_line) from None
        if printed:
            self._shown.write(printed)
        return answer

    def _in_hidden(self) -> bool:
        """Whether a line between markers is being run."""
        frame: FrameType | None = sys._getframe()
        while frame is not None:
            if frame.f_code.co_filename == FILE and self._is_hidden(frame.f_lineno):
                return True
            frame = frame.f_back
        return False

    def _is_hidden(self, line: int) -> bool:
        return any(first <= line <= last for first, last in self._hidden)

    def _words(self, error: BaseException, source: str, refused: dict[str, str]) -> dict[str, str]:
        """The error in words. `shown` is what the learner reads of it where the rest is about hidden values."""
        lines = [
            frame.lineno or 0 for frame in traceback.extract_tb(error.__traceback__) if frame.filename == FILE
        ] or [0]
        hidden = any(self._is_hidden(line) for line in lines)
        name = "NoAnswer" if isinstance(error, NoAnswerError) else type(error).__name__
        text = clip(str(error), _TEXT)
        said, shown = self._said(error, name, text, source, lines[0], hidden, refused)
        if hidden and (sentence := checks.thought()):
            shown += f"\n  think of:  {sentence}"
        return {"ename": name, "evalue": said} | ({"shown": clip(shown, _TEXT)} if hidden and shown != said else {})

    def _said(
        self, error: BaseException, name: str, text: str, source: str, line: int, hidden: bool, refused: dict[str, str]
    ) -> tuple[str, str]:
        """The whole message, and the one without hidden values."""
        if isinstance(error, NoAnswerError):
            return text, text
        if (learner := getattr(error, "learner", None)) is not None:
            what, _, at, code = learner
            short = hidden_checks.exception(text, code)
            return tuple(messages.learners_error(name, one, what, at, code) for one in (text, short))  # type: ignore[return-value]
        if isinstance(error, checks.CheckError):
            return text, hidden_checks.check(error)
        if isinstance(error, RemoteError):
            return text, text
        if isinstance(error, AssertionError):
            written = hidden_checks.assertion(source, line) if hidden else ""
            return text or (written if hidden else messages.does_not_hold(source, line)) or _NOT_SHOWN, written
        if isinstance(error, NameError) and (missing := getattr(error, "name", None)) in refused:
            return (f"{missing!r} cannot be used: {refused[missing]}",) * 2
        if isinstance(error, NameError) and text.endswith("is not defined"):
            return text, text
        telling = isinstance(error, _TELLING) or (isinstance(error, ValueError) and "values to unpack" in text)
        where = f"line {line} of the test" if not hidden and line else "a part of the test that is not shown"
        return messages.could_not_go_on(text, where), messages.could_not_go_on(text if telling else "", where)


class _Printed(io.TextIOBase):
    """What was printed outside hidden parts, bounded."""

    def __init__(self, hidden: Any) -> None:
        self._hidden, self._left, self._cut = hidden, _TEXT, 0
        self._parts: list[str] = []

    def writable(self) -> bool:
        return True

    def write(self, text: str) -> int:
        if text and not self._hidden():
            part = text[: self._left]
            self._parts.append(part)
            self._left -= len(part)
            self._cut += len(text) - len(part)
        return len(text)

    def text(self) -> str:
        note = f"\n[{self._cut:,} more characters were cut here]\n" if self._cut else ""
        return clip("".join(self._parts), 4 * _TEXT) + note


def _compile(source: str) -> tuple[CodeType, CodeType | None]:
    """The cell's statements; and its last expression, if it ends in one whose value a notebook would show."""
    tree = ast.parse(source, FILE)
    last = None
    if tree.body and isinstance(tree.body[-1], ast.Expr) and not source.rstrip().endswith(";"):
        last = compile(ast.Expression(tree.body.pop().value), FILE, "eval")  # type: ignore[attr-defined]
    return compile(tree, FILE, "exec"), last


def _plain_value(value: Any) -> dict[str, Any] | None:
    """The value of a cell's last expression: a number as such, anything else by its kind."""
    if value is None:
        return None
    if type(value).__module__ == "numpy" and getattr(value, "shape", None) == ():
        value = value.item()
    if type(value) in (int, float):
        return {"number": repr(float(value))}
    return {"kind": clip(type(value).__name__, 80)}


def _limit_memory(size: int) -> None:
    with contextlib.suppress(ImportError, ValueError, OSError):
        import resource

        resource.setrlimit(resource.RLIMIT_DATA, (size, size))
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


def serve(end: socket.socket, memory: int) -> None:
    """Run the cells that come over the socket until it closes, in a process of at most `memory` bytes of data."""
    _limit_memory(memory)
    link = Link(end)
    runner = Runner(link)
    with contextlib.suppress(LinkError):
        while True:
            if (message := link.receive())["type"] == "cell":
                link.send(runner.run(message))
