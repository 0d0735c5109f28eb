"""A learner's kernel, as the grader sees it: cells go in, bounded outputs come out, tests ask it questions.

The one idea: whatever the kernel does (print for ever, hang, ignore interrupts, die, lie), every request ends in time
with an answer or a reason. Only the Jupyter channels are used, so the kernel may run in any sandbox. Nothing it says is
trusted: messages are bounded in size and number before they are read.
"""

from __future__ import annotations

import base64
import contextlib
import secrets
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import zmq
from jupyter_client.manager import KernelManager

from .outputs import Outputs

_MESSAGE = 24 * 2**20  # bytes of one message of the kernel
_WAITING = 4  # messages that may wait to be read; further ones wait in the kernel
_GRACE = 5.0  # seconds to obey an interrupt
_PRINTED = 16_000  # bytes of what a call printed


@dataclass(frozen=True)
class Answer:
    """What came of a request. `kind`: "ok", "error" (a cell raised), "call" (the learner's code calls a function of the
    test), or what ended it: "timeout", "died", "malformed". `words` says why, for the learner."""

    kind: str
    text: str = ""
    printed: str = ""
    words: str = ""


class Learner:
    """One kernel; `start` and `restart` it. After "died" it is gone until then."""

    def __init__(self, kernel: str, folder: Path, arguments: list[str], config: Any, startup: float = 120) -> None:
        self._kernel, self._folder, self._arguments, self._config = kernel, folder, arguments, config
        self._startup, self._starts = startup, 0
        self._manager: Any = None
        self._client: Any = None
        self._open: tuple[str, Outputs] | None = None  # a request whose code waits for our answer to its call

    def start(self) -> None:
        """Start a new kernel. Raises what the kernel's provisioner raises, above all where no sandbox works."""
        self._open = None
        self._starts += 1
        context = zmq.Context()
        context.setsockopt(zmq.MAXMSGSIZE, _MESSAGE)  # defaults of the sockets to be made
        context.setsockopt(zmq.RCVHWM, _WAITING)
        context.setsockopt(zmq.LINGER, 0)
        self._manager = KernelManager(kernel_name=self._kernel, config=self._config, context=context)
        try:
            self._manager.start_kernel(cwd=str(self._folder), extra_arguments=self._arguments)
            self._client = self._manager.client(context=context)  # by itself it would make a context without the limits
            self._client.start_channels(hb=False, control=False)
            self._client.wait_for_ready(timeout=self._startup)
            self._client.allow_stdin = False
        except BaseException:
            self.stop()
            raise
        self._install()

    def stop(self) -> None:
        """End the kernel, if there is one, and free what it used."""
        manager, client = self._manager, self._client
        self._manager = self._client = self._open = None
        if manager is None:
            return
        context = manager.context
        with contextlib.suppress(Exception):
            if manager.has_kernel:
                manager.shutdown_kernel(now=True)
        with contextlib.suppress(Exception):
            manager.cleanup_resources()
        if client is not None:
            client.stop_channels()
        context.destroy(linger=0)

    @property
    def alive(self) -> bool:
        return self._manager is not None

    def usage(self) -> dict[str, float]:
        """Processor seconds and peak memory in bytes, where the kernel's provisioner counts them."""
        count = getattr(getattr(self._manager, "provisioner", None), "usage", None)
        if count is None:
            return {}
        used = count()
        return {"cpu_seconds": round(used.cpu_seconds, 3), "memory_peak": used.memory_peak}

    def run(self, source: str, seconds: float, outputs: Outputs) -> Answer:
        """Run a cell as a learner would; its outputs are collected in `outputs`."""
        if not self.alive:
            return Answer("died", words="there is no kernel")
        request = self._client.execute(source, allow_stdin=False, stop_on_error=False)
        answer, content = self._wait(request, seconds, outputs)
        if content.get("status") == "error" and not outputs.has_error():
            outputs.error(content.get("ename"), content.get("evalue"), content.get("traceback"))
        return answer

    def ask(self, text: str, seconds: float) -> Answer:
        """Send one message of the tests (see remote/proxy.py) and return what comes back."""
        if not self.alive:
            return Answer("died", words="the kernel had ended before")
        if self._open is not None:
            request, outputs = self._open
            self._client.input(text)
        else:
            coded = base64.b64encode(text.encode()).decode()
            expression = f"__import__('sys').modules['{self._name}'].serve(b'{coded}')"
            request = self._client.execute(
                "", silent=True, user_expressions={"answer": expression}, allow_stdin=True, stop_on_error=False
            )
            outputs = Outputs(text=_PRINTED, rich=0)
        self._open = None
        answer, content = self._wait(request, seconds, outputs)
        if answer.kind == "call":
            self._open = (request, outputs)
            return answer
        printed = outputs.text()
        if answer.kind != "ok":
            return Answer(answer.kind, printed=printed, words=answer.words)
        shown = _get(content, "user_expressions", "answer", "data", "text/plain")
        if isinstance(shown, str) and len(shown) > 1 and shown[0] == shown[-1] == "'" and "\\" not in shown:
            with contextlib.suppress(ValueError):
                return Answer("ok", base64.b64decode(shown[1:-1], validate=True).decode("ascii"), printed)
        return Answer("malformed", printed=printed, words="your notebook changed how its kernel answers")

    def drain(self) -> None:
        """Throw away what is printed between requests."""
        if self.alive:
            for _ in range(_WAITING):
                if self._message(self._client.iopub_channel) is None:
                    break

    def _install(self) -> None:
        """Send the kernel's end of the calls into it, under a name of its own."""
        here = Path(__file__).parent / "remote"
        self._name, self._token = f"_{secrets.token_hex(8)}", f"{secrets.token_hex(8)} "
        wire, end = (here / name for name in ("wire.py", "kernel_side.py"))
        source = end.read_text("utf-8").replace("from . import wire", "", 1)
        code = (
            "import base64, sys, types\n"
            "wire, end = types.ModuleType('wire'), types.ModuleType('kernel_side')\n"
            f"exec(compile({wire.read_text('utf-8')!r}, 'wire', 'exec'), wire.__dict__)\n"
            "end.wire = wire\n"
            f"exec(compile({source!r}, 'kernel_side', 'exec'), end.__dict__)\n"
            f"end.install({self._token!r}, __import__('IPython').get_ipython(), {self._starts * 10**9})\n"
            "frame, answer = types.ModuleType('frame'), end.serve\n"
            "frame.serve = lambda coded: base64.b64encode(answer(base64.b64decode(coded).decode()).encode()).decode()\n"
            f"sys.modules[{self._name!r}] = frame\n"
        )
        coded = base64.b64encode(code.encode()).decode()
        request = self._client.execute(
            "", silent=True, user_expressions={"x": f"exec(__import__('base64').b64decode('{coded}').decode(), {{}})"}
        )
        answer, _ = self._wait(request, self._startup, Outputs())
        if answer.kind != "ok":
            raise RuntimeError(f"the kernel does not answer: {answer.words}")

    def _wait(self, request: str, seconds: float, outputs: Outputs) -> tuple[Answer, dict[str, Any]]:
        found = self._listen(request, time.monotonic() + seconds, outputs)
        if found is None and self._manager.is_alive():
            with contextlib.suppress(Exception):
                self._manager.interrupt_kernel()
            stopped = self._listen(request, time.monotonic() + _GRACE, outputs)
            how = "" if stopped is not None else " and could not be interrupted"
            if stopped is None:
                self.stop()
            return Answer("timeout", words=f"it did not end within {max(seconds, 0):.3g} seconds{how}"), {}
        if found is None:
            reason = getattr(self._manager.provisioner, "reason", lambda: "")
            words = reason() or "it ended by itself"
            self.stop()
            return Answer("died", words=f"the kernel was lost: {words}"), {}
        if "prompt" in found:
            return Answer("call", found["prompt"]), {}
        return Answer("error" if found.get("status") == "error" else "ok"), found

    def _listen(self, request: str, deadline: float, outputs: Outputs) -> dict[str, Any] | None:
        """Collect outputs until the request is answered; None at the deadline or when the kernel is dead."""
        client = self._client
        all_three = (client.iopub_channel, client.shell_channel, client.stdin_channel)
        channels = {channel.socket: channel for channel in all_three}
        poller = zmq.Poller()
        for sock in channels:
            poller.register(sock, zmq.POLLIN)
        reply: dict[str, Any] | None = None
        idle = False
        while not (idle and reply is not None):
            left = deadline - time.monotonic()
            if left <= 0:
                return reply
            events = dict(poller.poll(int(min(left, 0.3) * 1000) + 1))
            if not events and not self._manager.is_alive():
                return reply
            for sock in channels:
                if sock not in events or (message := self._message(channels[sock])) is None:
                    continue
                kind, parent, content = message
                if parent != request:
                    continue
                if kind == "status":
                    idle = idle or content.get("execution_state") == "idle"
                elif kind == "execute_reply" and reply is None:
                    reply, deadline = content, min(deadline, time.monotonic() + 2)  # outputs follow at once
                elif kind == "input_request":
                    prompt = content.get("prompt")
                    if isinstance(prompt, str) and prompt.startswith(self._token):
                        return {"prompt": prompt[len(self._token) :]}
                    client.input("\x04")  # nobody is there to type: end of file
                else:
                    with contextlib.suppress(Exception):
                        outputs.take(kind, content)
        return reply

    @staticmethod
    def _message(channel: Any) -> tuple[str, str, dict[str, Any]] | None:
        """Kind, parent request and content of the next message; None if there is none, or it is malformed."""
        try:
            message = channel.get_msg(timeout=0)
            kind, parent = message["header"]["msg_type"], message["parent_header"].get("msg_id", "")
            content = message["content"]
        except Exception:  # also a queue that is empty: there is nothing to tell apart
            return None
        return (kind, parent, content) if isinstance(kind, str) and isinstance(content, dict) else None


def _get(value: Any, *keys: str) -> Any:
    for key in keys:
        value = value.get(key) if isinstance(value, dict) else None
    return value
