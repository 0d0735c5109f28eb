"""A learner's kernel, as the grader sees it: cells go in, bounded outputs come out, tests get a line to its objects.

Whatever the kernel does (print for ever, hang, ignore interrupts, die, lie), every request ends in time with an answer
or a reason. Cells go over the Jupyter channels. The tests' calls, a hundred for a notebook, would take four messages
each there; so while tests are run, the kernel is busy with one request, in which it answers calls over a socket of its
own (remote/kernel_side.py). Nothing it says is trusted: messages are bounded in size and number before they are read.
"""

from __future__ import annotations

import base64
import contextlib
import secrets
import shutil
import socket
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import zmq
from jupyter_client.manager import KernelManager

from autograder.run.budget import Deadline
from autograder.run.outputs import Outputs
from autograder.run.remote import link
from autograder.sandbox.limits import Usage

_MESSAGE = 24 * 2**20  # bytes of one message of the kernel
_WAITING = 4  # messages that may wait to be read; further ones wait in the kernel
_GRACE = 5.0  # seconds to obey an interrupt


@dataclass(frozen=True)
class Answer:
    """What came of a request. `kind`: "ok", "error" (a cell raised), or what ended it: "timeout", "died", "malformed".
    `words` says why, for the learner."""

    kind: str
    words: str = ""


class LineError(Exception):
    """The tests get no line to the kernel; `answer` says why."""

    def __init__(self, answer: Answer) -> None:
        super().__init__(answer.words)
        self.answer = answer


class Learner:
    """One kernel; `start` and `restart` it. After "died" it is gone until then."""

    def __init__(self, kernel: str, folder: Path, arguments: list[str], config: Any, startup: float = 120) -> None:
        self._kernel, self._folder, self._arguments, self._config = kernel, folder, arguments, config
        self._startup, self._starts = startup, 0
        self._manager: Any = None
        self._client: Any = None
        self._place: Path | None = None  # of the socket on which the kernel answers the tests
        self._own_folder = ""
        self._line: socket.socket | None = None
        self._name = ""  # of the module in the kernel
        self._gone = "there is no kernel"
        self.lost_to = ""  # what outside may have ended the last kernel that was lost: "starved", "killed" or nothing
        self._heard = False  # whether outputs arrive
        self._request = ""  # the request in which the kernel answers the tests

    def start(self) -> None:
        """Start a new kernel. Raises what the kernel's provisioner raises, above all where no sandbox works."""
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
            self._client.allow_stdin = False
            self._until_ready(time.monotonic() + self._startup)
        except BaseException:
            self.stop()
            raise

    def stop(self) -> None:
        """End the kernel, if there is one, and free what it used."""
        manager, client = self._manager, self._client
        self._manager = self._client = None
        if self._line is not None:
            self._line.close()
        self._line = self._place = None
        if self._own_folder:
            shutil.rmtree(self._own_folder, ignore_errors=True)
            self._own_folder = ""
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
        count = self._count()
        if count is None:
            return {}
        used = count()
        return {"cpu_seconds": round(used.cpu_seconds, 3), "memory_peak": used.memory_peak}

    def deadline(self, seconds: float) -> Deadline:
        """The end of `seconds` of this submission's time, which begin now."""
        return Deadline(seconds, self._count())

    def _count(self) -> Callable[[], Usage] | None:
        return getattr(getattr(self._manager, "provisioner", None), "usage", None)

    def run(self, source: str, seconds: float, outputs: Outputs) -> Answer:
        """Run a cell as a learner would; its outputs are collected in `outputs`."""
        if self.alive:
            self._hang_up()
        if not self.alive:
            return Answer("died", words="there is no kernel")
        request = self._client.execute(source, allow_stdin=False, stop_on_error=False)
        answer, content = self._wait(request, seconds, outputs)
        if _asks_to_exit(content):
            self._gone = "the cell ended its kernel: it calls exit() or quit()"
            self.stop()
            return Answer("died", words=self._gone)
        if content.get("status") == "error" and not outputs.has_error():
            outputs.error(content.get("ename"), content.get("evalue"), content.get("traceback"))
        return answer

    def line(self) -> tuple[socket.socket, bool]:
        """A socket to the kernel, which answers there until the next cell is run; and whether it is a new one.

        Raises LineError.
        """
        if not self.alive:
            raise LineError(Answer("died", words="the kernel had ended before"))
        if self._line is not None:
            return self._line, False
        token = secrets.token_hex(8)
        expression = f"__import__('sys').modules[{self._install()}].begin({token!r})"
        self._request = self._client.execute(
            "", silent=True, user_expressions={"x": expression}, allow_stdin=False, stop_on_error=False
        )
        self._line = self._call(token, time.monotonic() + self._startup)
        return self._line, True

    def lost(self) -> Answer:
        """Why the kernel has hung up on the tests."""
        self._hang_up(1.0)  # a kernel that is dying is dead soon
        if not self.alive:
            return Answer("died", words=self._gone)
        return Answer("malformed", words="your notebook changed how its kernel answers")

    def give_up(self) -> None:
        """The tests' time is over: stop what the kernel does for them."""
        if self._line is not None:
            self._cut()
            with contextlib.suppress(Exception):
                self._manager.interrupt_kernel()
            self._hang_up()

    def drain(self) -> None:
        """Throw away what is printed between requests."""
        if self.alive:
            for _ in range(_WAITING):
                if self._message(self._client.iopub_channel) is None:
                    break

    def _until_ready(self, deadline: float) -> None:
        """Wait until the kernel answers and its outputs arrive: a subscription takes effect some time after it is made.

        The client's own `wait_for_ready` sleeps until nothing has come for a fifth of a second.
        """
        self._heard = False
        while not self._heard:
            request = self._client.kernel_info()
            self._listen(request, self.deadline(min(deadline - time.monotonic(), 2.0)), Outputs(0, 0), 0.1)
            if not self._manager.is_alive():
                self._give_reason()
                raise RuntimeError(self._gone)
            if time.monotonic() > deadline:
                raise RuntimeError(f"the kernel did not answer within {self._startup:.0f} seconds")

    def _install(self) -> str:
        """Python text for the kernel: the name of the module in which its end of the calls stands, made when needed."""
        if self._place is not None:
            return f"'{self._name}'"
        found = getattr(self._manager.provisioner, "line", None)
        if found is None:  # no sandbox: the kernel makes the socket
            self._own_folder = tempfile.mkdtemp(prefix="learner-")
            self._place = Path(self._own_folder) / "t"
            listener = f"end.listening({str(self._place)!r})"
        else:
            self._place = found[0]
            listener = f"end.socket.socket(fileno={found[1]})"
        self._name = f"_{secrets.token_hex(8)}"
        here = Path(__file__).parent / "remote"
        wire, end = (here / name for name in ("wire.py", "kernel_side.py"))
        source = end.read_text("utf-8").replace("from autograder.run.remote import wire", "", 1)
        code = (
            "import sys, types\n"
            "wire, end = types.ModuleType('wire'), types.ModuleType('kernel_side')\n"
            f"exec(compile({wire.read_text('utf-8')!r}, 'wire', 'exec'), wire.__dict__)\n"
            "end.wire = wire\n"
            f"exec(compile({source!r}, 'kernel_side', 'exec'), end.__dict__)\n"
            "names = __import__('IPython').get_ipython().user_ns\n"
            f"listener = {listener}\n"
            f"end.begin = lambda token: end.attend(listener, token, names, {self._starts * 10**9})\n"
            f"sys.modules[{self._name!r}] = end\n"
        )
        coded = base64.b64encode(code.encode()).decode()
        return f"exec(__import__('base64').b64decode('{coded}').decode(), {{}}) or '{self._name}'"

    def _call(self, token: str, deadline: float) -> socket.socket:
        """Connect to the kernel and wait until it answers with the token of this request."""
        end = None
        while time.monotonic() < deadline:
            try:
                if end is None:
                    end = link.call(str(self._place), token)
                end.settimeout(0.2)
                if end.recv(1):
                    end.settimeout(None)
                    return end
                break
            except (FileNotFoundError, TimeoutError):
                pass
            except OSError:
                break
            # An answer before it listens to the tests: it cannot.
            if not self._manager.is_alive() or self._client.shell_channel.msg_ready():
                break
            if end is None:
                time.sleep(0.02)
        if end is not None:
            end.close()
        raise LineError(self.lost())

    def _cut(self) -> None:
        if self._line is not None:
            with contextlib.suppress(OSError):
                self._line.shutdown(socket.SHUT_RDWR)  # for the other holders of this socket too
            self._line.close()
            self._line = None

    def _hang_up(self, seconds: float = _GRACE) -> None:
        """End the request in which the kernel answers the tests; a kernel that does not end it is stopped."""
        self._cut()
        request, self._request = self._request, ""
        if request and self._listen(request, self.deadline(seconds), Outputs(0, 0)) is None:
            self._give_reason()
            self.stop()

    def _wait(self, request: str, seconds: float, outputs: Outputs) -> tuple[Answer, dict[str, Any]]:
        found = self._listen(request, self.deadline(seconds), outputs)
        if found is None and self._manager.is_alive():
            with contextlib.suppress(Exception):
                self._manager.interrupt_kernel()
            stopped = self._listen(request, self.deadline(_GRACE), outputs)
            how = "" if stopped is not None else " and could not be interrupted"
            if stopped is None:
                self.stop()
            return Answer("timeout", words=f"it did not end within {max(seconds, 0):.3g} seconds{how}"), {}
        if found is None:
            self._give_reason()
            self.stop()
            return Answer("died", words=self._gone), {}
        return Answer("error" if found.get("status") == "error" else "ok"), found

    def _give_reason(self) -> None:
        """Note why the kernel was lost."""
        provisioner = self._manager.provisioner
        reason = getattr(provisioner, "reason", lambda: "")
        self._gone = f"the kernel was lost: {reason() or 'it ended by itself'}"
        self.lost_to = getattr(provisioner, "from_outside", lambda: "")()

    def _listen(
        self, request: str, deadline: Deadline, outputs: Outputs, patience: float = 2.0
    ) -> dict[str, Any] | None:
        """Collect outputs until the request is answered; None at the deadline or when the kernel is dead.

        Outputs follow an answer at once; they are waited for `patience` seconds.
        """
        client = self._client
        all_three = (client.iopub_channel, client.shell_channel, client.stdin_channel)
        channels = {channel.socket: channel for channel in all_three}
        poller = zmq.Poller()
        for sock in channels:
            poller.register(sock, zmq.POLLIN)
        reply: dict[str, Any] | None = None
        idle = False
        while not (idle and reply is not None):
            if deadline.left() <= 0:
                return reply
            events = dict(poller.poll(300))
            if not events and not self._manager.is_alive():
                return reply
            for sock in channels:
                if sock not in events or (message := self._message(channels[sock])) is None:
                    continue
                kind, parent, content = message
                if parent != request:
                    continue
                if kind == "status":
                    self._heard = True
                    idle = idle or content.get("execution_state") == "idle"
                elif kind in ("execute_reply", "kernel_info_reply") and reply is None:
                    reply, deadline = content, self.deadline(patience)
                elif kind == "input_request":
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


def _asks_to_exit(content: dict[str, Any]) -> bool:
    """Whether a reply says that the kernel ends after it, as IPython's `exit` and `quit` make it."""
    payload = content.get("payload")
    return isinstance(payload, list) and any(
        isinstance(part, dict) and part.get("source") == "ask_exit" for part in payload
    )
