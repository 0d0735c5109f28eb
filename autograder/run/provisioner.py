"""Starts a Jupyter kernel in a sandbox, for every program that starts kernels by name: nbgrader, formgrader, validate.

A kernel provisioner is Jupyter's own place for this (jupyter_client, "Kernel provisioning"). The sandbox has no network
and shares no folder with the machine: the kernel's sockets are made here, in a folder of ours, and handed over open. A
program that cannot find this plugin cannot find the kernel either, so it runs nothing; where the sandbox does not work,
starting fails with the cure.
"""

from __future__ import annotations

import contextlib
import json
import shutil
import socket
from pathlib import Path
from typing import Any

from jupyter_client.connect import KernelConnectionInfo
from jupyter_client.provisioning import LocalProvisioner
from traitlets import Dict, List, Unicode

from autograder.sandbox import contents, launch, warm_kernels
from autograder.sandbox.entry import FIRST_HANDED
from autograder.sandbox.limits import Limits, Usage

_CONNECTION = "connection.json"
_LINE = "t"  # the socket on which the kernel answers the tests

# What the kernel's process runs: ZeroMQ takes each socket that was handed over instead of making one.
_START = """
import runpy, sys, zmq
def bind(socket, address, bind=zmq.Socket.bind):
    _, _, port = address.partition("ipc://handed-over-")
    if port.isdigit():
        socket.setsockopt(zmq.USE_FD, FIRST + int(port))
    return bind(socket, address)
zmq.Socket.bind = bind
runpy.run_module(MODULE, run_name="__main__", alter_sys=True)
"""


class SandboxProvisioner(LocalProvisioner):
    """A kernel's life in one sandbox; a restart gets a new one. The traits come from the kernelspec (kernelspec.py)."""

    limits = Dict(help="fields of autograder.sandbox.limits.Limits").tag(config=True)
    allow = Dict(help="assignment -> modules of local packages that a learner may import; '*' for all assignments").tag(
        config=True
    )
    hide = List(Unicode(), help="folders of which nothing may be seen").tag(config=True)

    box: launch.Sandbox | None = None
    _folder: Path | None = None
    _usage = Usage()
    _reason = ""
    _from_outside = ""

    async def pre_launch(self, **kwargs: Any) -> dict[str, Any]:
        """Choose sockets in a folder with a short path. Raises SandboxError where no sandbox works."""
        launch.check()
        if self._folder is None:
            self._folder = contents.temporary("kernel")
        for old in self._folder.iterdir():
            old.unlink()
        manager: Any = self.parent
        manager.transport = "ipc"
        manager.cache_ports = False
        manager.ip = f"{self._folder}/k"
        manager.connection_file = str(self._folder / _CONNECTION)
        return await super().pre_launch(**kwargs)

    async def launch_kernel(self, cmd: list[str], **kwargs: Any) -> KernelConnectionInfo:
        """Start the kernel; of the keyword arguments only `cwd` counts, the folder whose files it is given."""
        assert self._folder is not None
        connection = json.loads((self._folder / _CONNECTION).read_text())
        outside, inside = str(self._folder / _CONNECTION), f"{contents.FILES}/{_CONNECTION}"
        cwd = Path(kwargs["cwd"]).resolve() if kwargs.get("cwd") else None
        words = [inside if word == outside else word for word in cmd]
        with contextlib.ExitStack() as ours:  # once the kernel has them, only it holds them
            ports = [name for name in connection if name.endswith("_port")]
            handed = [ours.enter_context(self._listen(_LINE, blocking=True))]
            handed += [ours.enter_context(self._listen(f"k-{connection[name]}", blocking=False)) for name in ports]
            connection |= {name: place for place, name in enumerate(ports, start=1)} | {"ip": "handed-over"}
            job = launch.Job(
                argv=_with_sockets(words),
                limits=Limits(**self.limits),
                inputs=cwd,
                allow=self._allowed(cwd.name if cwd else ""),
                hide=tuple(Path(folder) for folder in self.hide),
                handed=tuple(end.fileno() for end in handed),
                files={_CONNECTION: json.dumps(connection)},
            )
            self.box = warm_kernels.start(job) or launch.start(job)
        self._reason = self._from_outside = ""
        self.process = self.box.process  # type: ignore[assignment]  # has what is used of Popen
        self.pid = self.pgid = self.box.process.pid
        self.cwd = kwargs.get("cwd")
        return self.connection_info

    @property
    def line(self) -> tuple[Path, int]:
        """The socket on which the kernel answers the tests: its path for us, and its number inside."""
        assert self._folder is not None
        return self._folder / _LINE, FIRST_HANDED

    def _listen(self, name: str, blocking: bool) -> socket.socket:
        """A listening socket in a folder that only we can change."""
        assert self._folder is not None
        end = socket.socket(socket.AF_UNIX)
        end.bind(f"{self._folder}/{name}")
        end.listen(16)
        end.setblocking(blocking)
        return end

    def usage(self) -> Usage:
        """Processor time and memory of the kernel and all it started, also after its end."""
        return self.box.usage() if self.box else self._usage

    def reason(self) -> str:
        """Why the kernel ended, in words for a learner; empty if it runs or was shut down."""
        return self._reason or (self.box.reason() if self.box else "")

    def from_outside(self) -> str:
        """What outside may have ended the kernel; see Sandbox.from_outside."""
        return self._from_outside or (self.box.from_outside() if self.box else "")

    async def wait(self) -> int | None:
        code = await super().wait()
        self._close()
        return code

    async def kill(self, restart: bool = False) -> None:
        if self.box:
            self.box.kill()

    async def terminate(self, restart: bool = False) -> None:
        await self.kill(restart)  # nothing inside has anything to save

    async def cleanup(self, restart: bool = False) -> None:
        self._close()
        if self._folder is not None and not restart:
            shutil.rmtree(self._folder, ignore_errors=True)
            self._folder = None

    def _allowed(self, assignment: str) -> tuple[str, ...]:
        names = [contents.CHECKS, *self.allow.get("*", []), *self.allow.get(assignment, [])]
        return tuple(dict.fromkeys(names))

    def _close(self) -> None:
        if self.box is not None:
            ended = self.box.process.returncode not in (0, None)
            self._reason = self.box.reason() if ended else ""
            self._from_outside = self.box.from_outside() if ended else ""
            self._usage = self.box.stop()
            self.box = None


def _with_sockets(command: list[str]) -> list[str]:
    """A kernel's command `python -m MODULE ...`, with the sockets that were handed over."""
    python, flag, module, *words = command
    if flag != "-m":
        raise launch.SandboxError(f"a sandboxed kernel is started as `python -m MODULE`, not as {' '.join(command)}")
    text = _START.replace("FIRST", str(FIRST_HANDED)).replace("MODULE", repr(module))
    return [python, "-c", text, *words]
