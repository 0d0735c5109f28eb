"""Starts a Jupyter kernel in a sandbox, for every program that starts kernels by name: nbgrader, formgrader, validate.

A kernel provisioner is Jupyter's own place for this (jupyter_client, "Kernel provisioning"). The kernel and its client
talk through sockets in a folder that both see, since the sandbox has no network. A program that cannot find this plugin
cannot find the kernel either, so it runs nothing; where the sandbox does not work, starting fails with the cure.
"""

from __future__ import annotations

import asyncio
import json
import shutil
import time
from pathlib import Path
from typing import Any

from jupyter_client.connect import KernelConnectionInfo
from jupyter_client.provisioning import LocalProvisioner
from traitlets import Dict, List, Unicode

from autograder.sandbox import job as outfit
from autograder.sandbox import launch as sandbox
from autograder.sandbox import warm_kernels as warm
from autograder.sandbox.limits import Limits, Usage

_CONNECTION = "connection.json"
_SOON = 10  # seconds; a kernel that takes longer is waited for by whoever started it


class SandboxProvisioner(LocalProvisioner):
    """A kernel's life in one sandbox; a restart gets a new one. The traits come from the kernelspec (kernelspec.py)."""

    limits = Dict(help="fields of autograder.sandbox.limits.Limits").tag(config=True)
    allow = Dict(help="assignment -> modules of local packages that a learner may import; '*' for all assignments").tag(
        config=True
    )
    hide = List(Unicode(), help="folders of which nothing may be seen").tag(config=True)

    box: sandbox.Sandbox | None = None
    _folder: Path | None = None
    _usage = Usage()
    _reason = ""

    async def pre_launch(self, **kwargs: Any) -> dict[str, Any]:
        """Choose sockets in a folder with a short path. Raises SandboxError where no sandbox works."""
        sandbox.check()
        if self._folder is None:
            self._folder = outfit.temporary("kernel", warm.yard())
        for old in self._sockets.glob("*"):
            old.unlink()
        self._sockets.mkdir(exist_ok=True)
        manager: Any = self.parent
        manager.transport = "ipc"
        manager.cache_ports = False
        manager.ip = f"{self._sockets}/k"
        manager.connection_file = str(self._folder / _CONNECTION)
        return await super().pre_launch(**kwargs)

    async def launch_kernel(self, cmd: list[str], **kwargs: Any) -> KernelConnectionInfo:
        """Start the kernel; of the keyword arguments only `cwd` counts, the folder whose files it is given."""
        assert self._folder is not None
        connection = json.loads((self._folder / _CONNECTION).read_text())
        connection["ip"] = f"{outfit.SHARED}/k"
        outside, inside = str(self._folder / _CONNECTION), f"{outfit.FILES}/{_CONNECTION}"
        cwd = Path(kwargs["cwd"]).resolve() if kwargs.get("cwd") else None
        job = sandbox.Job(
            argv=[inside if word == outside else word for word in cmd],
            limits=Limits(**self.limits),
            inputs=cwd,
            allow=self._allowed(cwd.name if cwd else ""),
            hide=tuple(Path(folder) for folder in self.hide),
            shared=self._sockets,
            files={_CONNECTION: json.dumps(connection)},
        )
        self.box = warm.start(job) or sandbox.start(job)
        self._reason = ""
        self.process = self.box.process  # type: ignore[assignment]  # has what is used of Popen
        self.pid = self.pgid = self.box.process.pid
        await self._until_it_listens()
        self.cwd = kwargs.get("cwd")
        return self.connection_info

    async def _until_it_listens(self) -> None:
        """A client that connects too early would try again only after a while."""
        ports = [port for name, port in self.connection_info.items() if name.endswith("_port")]
        deadline = time.monotonic() + _SOON
        while self.box and self.box.process.poll() is None and time.monotonic() < deadline:
            if all((self._sockets / f"k-{port}").exists() for port in ports):
                return
            await asyncio.sleep(0.002)

    @property
    def meeting(self) -> tuple[Path, str]:
        """The folder that both sides see, by both names; for sockets."""
        return self._sockets, outfit.SHARED

    def usage(self) -> Usage:
        """Processor time and memory of the kernel and all it started, also after its end."""
        return self.box.usage() if self.box else self._usage

    def reason(self) -> str:
        """Why the kernel ended, in words for a learner; empty if it runs or was shut down."""
        return self._reason or (self.box.reason() if self.box else "")

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

    @property
    def _sockets(self) -> Path:
        assert self._folder is not None
        return self._folder / "s"

    def _allowed(self, assignment: str) -> tuple[str, ...]:
        names = [outfit.CHECKS, *self.allow.get("*", []), *self.allow.get(assignment, [])]
        return tuple(dict.fromkeys(names))

    def _close(self) -> None:
        if self.box is not None:
            self._reason = self.box.reason() if self.box.process.returncode not in (0, None) else ""
            self._usage = self.box.stop()
            self.box = None
