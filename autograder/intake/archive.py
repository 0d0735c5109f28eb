"""Unpacks an archive that a learner uploaded (zip, tar, tar.gz): plain files inside the target folder, and no more.

An archive's table of contents is only a claim. Names are judged before anything is written, sizes by the bytes that
come out, and everything but plain files and folders is refused, each with a sentence. The work is bounded by what a
submission may hold, however much the archive says it holds.
"""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import stat
import tarfile
import zipfile
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import IO, Any

from autograder.intake.canonical import quoted
from autograder.intake.receive import Allowance

_BLOCK = 2**16
_BY_AND_BY = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)  # the other methods decompress a block as a whole
_HEADERS = 10 * 10**6  # bytes of a tar file beside its files
_BROKEN = (
    OSError,
    MemoryError,
    OverflowError,
    lzma.LZMAError,
    EOFError,
    RuntimeError,
    NotImplementedError,
    ValueError,
    zlib.error,
    zipfile.BadZipFile,
    tarfile.TarError,
)


def unpack(archive: Path, target: Path, allowance: Allowance | None = None) -> list[str]:
    """Unpack into the folder `target`; returns what was refused. Never raises because of what the archive holds."""
    allowance = allowance or Allowance()
    refused: list[str] = []
    target.mkdir(parents=True, exist_ok=True)
    names: set[str] = set()
    total = 0
    try:
        for name, why, stream in _members(archive, allowance):
            why = why or _judge(name, allowance)
            if not why and name.casefold() in names:
                why = "the archive holds that name twice"
            if not why and len(names) >= allowance.files:
                refused.append(f"The rest of the archive was refused: it holds more than {allowance.files} files.")
                break
            if not why and stream is not None:
                names.add(name.casefold())
                size = _write(stream, target / name, min(allowance.file, allowance.total - total))
                why = "" if size is not None else "it is larger than a submission may be"
                total += size or 0
            if why:
                refused.append(f"The file {quoted(name)} of the archive was refused: {why}.")
                if len(refused) > 50:
                    break
    except _BROKEN as error:
        refused.append(f"The archive {quoted(archive.name)} cannot be read to its end: {quoted(error)}.")
    return refused


def _members(archive: Path, allowance: Allowance) -> Iterator[tuple[str, str, IO[bytes] | None]]:
    """Each entry's name, why it is no plain file (or nothing), and its content."""
    if zipfile.is_zipfile(archive):
        yield from _zip_members(archive)
        return
    with archive.open("rb") as file:
        start = file.read(6)
        file.seek(0)
        opened = next((kind(file) for magic, kind in _COMPRESSED.items() if start.startswith(magic)), file)
        # As a stream, so that what is read is counted once and nothing is read twice.
        with tarfile.open(fileobj=_Bounded(opened, allowance.total + _HEADERS), mode="r|") as pack:
            for member in pack:
                if member.isdir():
                    continue
                content = pack.extractfile(member) if member.isreg() else None
                yield member.name, "" if content else "it is a link or a device, not a file", content


_COMPRESSED: dict[bytes, Callable[[IO[bytes]], Any]] = {
    b"\x1f\x8b": gzip.open,
    b"BZh": bz2.open,
    b"\xfd7zXZ\0": lzma.open,
}


class _Bounded(io.RawIOBase):
    """A stream that ends in an error where more comes out than a submission may hold."""

    def __init__(self, stream: IO[bytes], most: int) -> None:
        self._stream, self._left = stream, most

    def read(self, size: int = -1) -> bytes:
        block = self._stream.read(min(size, self._left + 1) if size >= 0 else self._left + 1)
        self._left -= len(block)
        if self._left < 0:
            raise OSError("more comes out of it than a submission may hold")
        return block


def _zip_members(archive: Path) -> Iterator[tuple[str, str, IO[bytes] | None]]:
    with zipfile.ZipFile(archive) as opened:
        for info in opened.infolist():
            kind = stat.S_IFMT(info.external_attr >> 16)
            name = info.filename.replace("\\", "/")  # as some programs on Windows write it
            if name.endswith("/"):
                continue
            if kind not in (0, stat.S_IFREG):
                yield name, "it is a link or a device, not a file", None
            elif info.flag_bits & 1:
                yield name, "it is encrypted", None
            elif info.compress_type not in _BY_AND_BY:
                yield name, "it is compressed in an unusual way; use an ordinary zip file", None
            else:
                with opened.open(info) as stream:
                    yield name, "", stream


def _judge(name: str, allowance: Allowance) -> str:
    """Why a name must not be used as a path; empty if it may."""
    parts = name.split("/")
    if name.startswith("/") or "\\" in name or ".." in parts or (len(name) > 1 and name[1] == ":"):
        return "its name leads out of the folder"
    if not name.isprintable() or any(not part or part == "." or len(part.encode()) > 200 for part in parts):
        return "its name holds characters that names of files should not hold, or is too long"
    return "folders lie too deep" if len(parts) > allowance.depth else ""


def _write(stream: IO[bytes], path: Path, most: int) -> int | None:
    """Copy at most that many bytes; None, and no file, if there are more."""
    path.parent.mkdir(parents=True, exist_ok=True)
    size = 0
    with path.open("xb") as file:
        while block := stream.read(_BLOCK):
            size += len(block)
            if size > most:
                break
            file.write(block)
    if size > most:
        path.unlink()
        return None
    return size
