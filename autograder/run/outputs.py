"""A cell's outputs, bounded while they arrive.

Bytes are counted, not lines, and what is over the limit is never kept, so neither an endless print nor
twenty lines of a megabyte each reach the grader's memory or the graded notebook. Everything that a kernel says is
checked: only known kinds of output with texts inside are kept.
"""

from __future__ import annotations

from typing import Any

from nbformat.notebooknode import NotebookNode
from nbformat.v4 import new_output

from autograder.intake.text import clip, visible

RICH = ("text/html", "text/markdown", "text/latex", "image/png", "image/jpeg", "image/gif", "image/svg+xml")
_ERRORS = 3  # of one cell
_PARTS = 100  # outputs of one cell


class Outputs:
    """Collects one cell's outputs: at most `text` bytes of text and `rich` bytes of figures and the like."""

    def __init__(self, text: int = 64_000, rich: int = 2_000_000) -> None:
        self._text, self._rich = text, rich
        self.kept_bytes = 0
        self._kept: list[NotebookNode] = []
        self._streams: list[list[str]] = []  # the pieces of each stream output in _kept
        self._cut = 0

    def take(self, kind: str, content: Any) -> None:
        """One message of the kernel's output channel. What is malformed is dropped."""
        if kind == "stream" and isinstance(text := content.get("text"), str):
            self._stream("stderr" if content.get("name") == "stderr" else "stdout", text)
        elif kind in ("display_data", "execute_result") and isinstance(content.get("data"), dict):
            self._show(kind, content)
        elif kind == "error":
            self.error(content.get("ename"), content.get("evalue"), content.get("traceback"))
        elif kind == "clear_output":
            self._kept, self._streams = [], []

    def error(self, ename: object, evalue: object, traceback: object = None) -> None:
        """The error that a cell ended in."""
        if sum(output.output_type == "error" for output in self._kept) < _ERRORS:
            lines = [clip(line, 4000) for line in traceback[:40]] if isinstance(traceback, list) else []
            name, value = visible(clip(ename, 200)) or "Error", visible(clip(evalue, 8000))
            self._add(new_output("error", ename=name, evalue=value, traceback=lines or [f"{name}: {value}"]))

    def has_error(self) -> bool:
        return any(output.output_type == "error" for output in self._kept)

    def text(self) -> str:
        """All that was printed."""
        return "".join("".join(pieces) for pieces in self._streams)

    def finish(self) -> list[NotebookNode]:
        """The outputs as a notebook keeps them, with a note about what was cut."""
        streams = iter(self._streams)
        for output in self._kept:
            if output.output_type == "stream":
                output.text = "\n".join(map(_last_state, "".join(next(streams)).split("\n")))
        if self._cut:
            note = f"\n[{self._cut:,} bytes of output were cut here]\n"
            self._kept.append(new_output("stream", name="stdout", text=note))
        return self._kept

    def _stream(self, name: str, text: str) -> None:
        size = len(text.encode("utf-8", "replace"))
        piece = clip(text, self._text, note=False) if self._text > 0 else ""
        self._text -= (kept := len(piece.encode()))
        self.kept_bytes += kept
        self._cut += size - kept
        if not piece:
            return
        last = self._kept[-1] if self._kept else None
        if last is not None and last.output_type == "stream" and last.name == name:
            self._streams[-1].append(piece)
        elif self._add(new_output("stream", name=name, text="")):
            self._streams.append([piece])

    def _show(self, kind: str, content: dict[str, Any]) -> None:
        data = {}
        for mime, value in content["data"].items():
            if isinstance(value, list) and all(isinstance(line, str) for line in value):
                value = "".join(value)
            if not isinstance(value, str):
                continue
            if mime == "text/plain":
                data[mime] = clip(value, max(min(self._text, 8000), 100))
                self._text -= len(data[mime].encode())
                self.kept_bytes += len(data[mime].encode())
            elif mime in RICH:
                if (size := len(value.encode("utf-8", "replace"))) <= self._rich:
                    self._rich -= size
                    self.kept_bytes += size
                    data[mime] = clip(value, size)
                else:
                    self._cut += size
        if data and self._text > 0:
            count = content.get("execution_count")
            more = {"execution_count": count if type(count) is int else None} if kind == "execute_result" else {}
            self._add(new_output(kind, data=data, **more))

    def _add(self, output: NotebookNode) -> bool:
        if len(self._kept) >= _PARTS and output.output_type != "error":
            self._cut += 1
            return False
        self._kept.append(output)
        return True


def _last_state(line: str) -> str:
    """What stays of a line to whose start a progress bar has returned."""
    return line[line.rstrip("\r").rfind("\r") + 1 :]
