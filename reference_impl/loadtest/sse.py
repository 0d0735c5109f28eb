"""Server-sent events, read from the bytes of a response as they arrive (WHATWG HTML standard, section 9.2).

The one idea: bytes are cut at line ends only, so it does not matter how the network cut them. (Cutting decoded text
into lines is a trap: Python's `splitlines` also cuts at characters that JSON may hold, such as U+2028.)
"""

from collections.abc import AsyncIterable, AsyncIterator


async def read_events(chunks: AsyncIterable[bytes]) -> AsyncIterator[str]:
    """The data of each event. Comments, other fields and an event that the end cuts off are left out."""
    data: list[str] = []
    async for line in _lines(chunks):
        if not line:
            if data:
                yield "\n".join(data)
            data = []
            continue
        name, _, value = line.partition(b":")
        if name == b"data":
            data.append(value.removeprefix(b" ").decode("utf-8", "replace"))


async def _lines(chunks: AsyncIterable[bytes]) -> AsyncIterator[bytes]:
    """Complete lines, ended by LF or CR LF. (A lone CR, which the standard allows as well, no server sends.)"""
    rest = b""
    async for chunk in chunks:
        *lines, rest = (rest + chunk).split(b"\n")
        for line in lines:
            yield line.removesuffix(b"\r")
