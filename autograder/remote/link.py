"""Messages between the grading process and the process that runs the tests: JSON over a socket pair, length first."""

from __future__ import annotations

import json
import selectors
import socket
import struct
import time
from collections.abc import Callable
from typing import Any

MOST = 2**27  # bytes of one message; both ends are ours, but what passes through is a learner's


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

    def receive(self, deadline: float | None = None, idle: Callable[[], None] | None = None) -> dict[str, Any]:
        """The next message; LinkError at `deadline` (of time.monotonic) or when the other end closes."""
        (size,) = struct.unpack("!I", self._read(4, deadline, idle))
        if size > MOST:
            raise LinkError("a message that is too long")
        message: dict[str, Any] = json.loads(self._read(size, deadline, idle))
        return message

    def close(self) -> None:
        self._socket.close()

    def _read(self, size: int, deadline: float | None, idle: Callable[[], None] | None) -> bytes:
        parts = bytearray()
        with selectors.DefaultSelector() as selector:
            selector.register(self._socket, selectors.EVENT_READ)
            while len(parts) < size:
                left = None if deadline is None else deadline - time.monotonic()
                if left is not None and left <= 0:
                    raise LinkError("no answer in time")
                if not selector.select(left if idle is None else min(left or 0.2, 0.2)):
                    if idle is not None:
                        idle()
                    continue
                block = self._socket.recv(min(size - len(parts), 2**20))
                if not block:
                    raise LinkError("the other process ended")
                parts += block
        return bytes(parts)
