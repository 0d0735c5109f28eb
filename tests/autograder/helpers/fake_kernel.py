"""A learner's kernel without Jupyter: the same text is installed in a module, and a thread plays the kernel's part."""

from __future__ import annotations

import queue
import threading
import types
from pathlib import Path
from typing import Any

import autograder
from autograder.run.remote.proxy import Kernel

REMOTE = Path(autograder.__file__).parent / "run" / "remote"


class FakeKernel:
    """Runs `code` as a learner's cell would; `names()` gives its names as proxies."""

    def __init__(self, code: str) -> None:
        self.user_ns: dict[str, Any] = {"__name__": "__main__"}
        exec(code, self.user_ns)
        wire = self._module("wire")
        self._end = self._module("kernel_side", wire=wire)
        self._to_kernel: queue.Queue[str] = queue.Queue()
        self._from_kernel: queue.Queue[tuple[str, bool]] = queue.Queue()
        self._end.install(self.user_ns, self.ask_the_test)
        self._busy = False
        self.kernel = Kernel(self._exchange)

    def names(self) -> types.SimpleNamespace:
        found, _ = self.kernel.names(name for name in self.user_ns if name[0] != "_")
        return types.SimpleNamespace(**found)

    def ask_the_test(self, text: str) -> str:
        self._from_kernel.put((text, True))
        return self._to_kernel.get(timeout=30)

    def answer(self, text: str) -> str:
        """What the kernel's end answers to a request; tests replace it to lie."""
        return str(self._end.serve(text))

    def _exchange(self, text: str) -> str:
        if self._busy:
            self._to_kernel.put(text)
        else:
            threading.Thread(target=lambda: self._from_kernel.put((self.answer(text), False)), daemon=True).start()
        answer, self._busy = self._from_kernel.get(timeout=30)
        return answer

    @staticmethod
    def _module(name: str, **more: Any) -> Any:
        module = types.ModuleType(name)
        module.__dict__.update(more)
        source = (REMOTE / f"{name}.py").read_text(encoding="utf-8").replace("from . import wire", "", 1)
        exec(compile(source, name, "exec"), module.__dict__)
        return module
