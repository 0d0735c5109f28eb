"""Reads server-sent events from the bytes of a response as they arrive (WHATWG HTML standard, section 9.2).

Bytes are cut at line ends only, so it does not matter where the network cut them. Python's `splitlines` must not cut
decoded text, since it also cuts at characters that JSON may hold, such as U+2028.
"""

import re
from collections.abc import AsyncIterable, AsyncIterator

_LINE_END = re.compile(rb"\r\n|\n|\r")
_BYTE_ORDER_MARK = b"\xef\xbb\xbf"


async def read_events(chunks: AsyncIterable[bytes]) -> AsyncIterator[str]:
    """Yields the data of each event, without comments, other fields, and an event that the end cuts off."""
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
    """Complete lines, ended by LF, CR LF or CR, without a byte order mark at the beginning."""
    rest, first, after_cr = b"", True, False
    async for chunk in chunks:
        if after_cr and chunk:  # an LF right after the CR belongs to the line end that was cut in two
            chunk, after_cr = chunk.removeprefix(b"\n"), False
        rest += chunk
        *lines, rest = _LINE_END.split(rest)
        after_cr = bool(lines) and not rest and chunk.endswith(b"\r")
        for line in lines:
            yield line.removeprefix(_BYTE_ORDER_MARK) if first else line
            first = False
