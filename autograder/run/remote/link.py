"""Messages of the process that runs the tests: to the grading process, and to a learner's kernel; length first."""

from __future__ import annotations

import contextlib
import json
import select
import selectors
import socket
import struct
from collections.abc import Callable
from typing import Any

MOST = 2**27  # bytes of one message between our own processes
MOST_OF_KERNEL = 24 * 2**20  # and of one from a kernel


class LinkError(Exception):
    """The other end is gone, or did not answer in time."""


class Link:
    """One end. `idle` of `receive` is called a few times a second while nothing comes."""

    def __init__(self, end: socket.socket) -> None:
        self._socket = end

    def send(self, message: dict[str, Any]) -> None:
        data = json.dumps(message).encode("ascii")
        try:
            self._socket.sendall(struct.pack("!I", len(data)) + data)
        except OSError as error:
            raise LinkError("the other process is gone") from error

    def receive(
        self, left: Callable[[], float] | None = None, idle: Callable[[], None] | None = None
    ) -> dict[str, Any]:
        """The next message; LinkError when `left()`, the seconds that are left, falls to 0 or the other end closes."""
        (size,) = struct.unpack("!I", self._read(4, left, idle))
        if size > MOST:
            raise LinkError("a message that is too long")
        message: dict[str, Any] = json.loads(self._read(size, left, idle))
        return message

    def send_handle(self, number: int) -> None:
        """Hand an open file or socket over; it follows the last message."""
        try:
            socket.send_fds(self._socket, [b"h"], [number])
        except OSError as error:
            raise LinkError("the other process is gone") from error

    def receive_handle(self) -> int:
        _, handles, _, _ = socket.recv_fds(self._socket, 1, 1)
        if not handles:
            raise LinkError("the other process ended")
        return handles[0]

    def fileno(self) -> int:
        return self._socket.fileno()

    def close(self) -> None:
        self._socket.close()

    def _read(self, size: int, left: Callable[[], float] | None, idle: Callable[[], None] | None) -> bytes:
        parts = bytearray()
        with selectors.DefaultSelector() as selector:
            selector.register(self._socket, selectors.EVENT_READ)
            while len(parts) < size:
                if left is not None and left() <= 0:
                    raise LinkError("no answer in time")
                if not selector.select(0.2 if left or idle else None):
                    if idle is not None:
                        idle()
                    continue
                block = self._socket.recv(min(size - len(parts), 2**20))
                if not block:
                    raise LinkError("the other process ended")
                parts += block
        return bytes(parts)


def call(path: str, token: str) -> socket.socket:
    """Connect to a kernel's socket and say for which request. Raises OSError where nobody listens."""
    end = socket.socket(socket.AF_UNIX)
    try:
        end.connect(path)
        end.sendall(token.encode("ascii"))
    except OSError:
        end.close()
        raise
    return end


class KernelLine:
    """The tests' end of the line to a learner's kernel (kernel_side.py): text goes in, text comes out."""

    def __init__(self, end: socket.socket, life: Link) -> None:
        self._end = end
        self._poll = select.poll()
        self._poll.register(end, select.POLLIN)
        self._poll.register(life, select.POLLIN)  # nothing comes there while we wait here, but its end

    def ask(self, text: str) -> tuple[str, str]:
        """What was printed meanwhile, and the answer. LinkError if the kernel has hung up or says nonsense."""
        data = text.encode("ascii")
        try:
            self._end.sendall(len(data).to_bytes(8, "big") + data)
            return self._receive(), self._receive()
        except (OSError, UnicodeDecodeError) as error:
            raise LinkError("the kernel has hung up") from error

    def close(self) -> None:
        with contextlib.suppress(OSError):
            self._end.close()

    def _receive(self) -> str:
        size = int.from_bytes(self._read(8), "big")
        if size > MOST_OF_KERNEL:
            raise LinkError("a message that is too long")
        return self._read(size).decode("utf-8")

    def _read(self, size: int) -> bytes:
        parts = bytearray()
        while len(parts) < size:
            ready = [number for number, _ in self._poll.poll()]
            if self._end.fileno() not in ready:
                raise LinkError("the grading process has ended")
            block = self._end.recv(min(size - len(parts), 2**20))
            if not block:
                raise LinkError("the kernel has hung up")
            parts += block
        return bytes(parts)
