"""Treats connections as slow and careless clients need it: headers must end, and a half-closed one is answered.

A client that sends one header byte a minute would hold its connection forever: uvicorn limits how long a connection may
idle between requests, but not how long the headers of a request may take.
"""

from __future__ import annotations

import asyncio

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol

HEADER_SECONDS = 30.0
PROBE_SECONDS = 0.5  # between two looks whether a client that has closed its half is still there
_COMPLETE = (h11.DONE, h11.MUST_CLOSE)  # of a request: with and without another one to come


class HeaderLimit(H11Protocol):
    """uvicorn's protocol, with `HEADER_SECONDS` from a request's first chance to arrive to the end of its headers."""

    _deadline: asyncio.TimerHandle | None = None
    _probing: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._watch()

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        self._watch()

    def connection_lost(self, exc: Exception | None) -> None:
        super().connection_lost(exc)
        self._stop()
        if self._probing is not None:
            self._probing.cancel()

    def eof_received(self) -> bool:  # type: ignore[override]
        """The client sends nothing more. If its request is complete it may still read, so the connection stays open."""
        if self.cycle is None or self.cycle.response_complete or self.conn.their_state not in _COMPLETE:
            return False
        self.cycle.keep_alive = False
        self._probe()
        return True

    def _probe(self) -> None:
        """Asks a half-closed connection whether its client is there: a client that is gone lets the write fail."""
        cycle = self.cycle
        if cycle.response_started or cycle.response_complete or self.transport.is_closing():
            return  # the answer's own writes tell
        if self.conn.their_http_version == b"1.1":  # older clients know no interim responses
            self.transport.write(self.conn.send(h11.InformationalResponse(status_code=102, headers=[])))
        self._probing = self.loop.call_later(PROBE_SECONDS, self._probe)

    def _watch(self) -> None:
        """The limit runs while the next request's headers are incomplete, and is not extended by more of them."""
        if self.conn.their_state is not h11.IDLE:
            self._stop()
        elif self._deadline is None:
            self._deadline = self.loop.call_later(HEADER_SECONDS, self.transport.close)

    def _stop(self) -> None:
        if self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None
