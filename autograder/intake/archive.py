"""Unpacks an archive that a learner uploaded (zip, tar, tar.gz): plain files inside the target folder, and no more.

The one idea: an archive's table of contents is a claim. Names are judged before anything is written, sizes by the bytes
that come out, and everything but plain files and folders is refused, each with a sentence.
"""

from __future__ import annotations

import stat
import tarfile
import zipfile
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import IO

from autograder.intake.canonical import quoted
from autograder.intake.collect import Allowance

_BLOCK = 2**16
_BROKEN = (
    OSError,
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
        for name, why, stream in _members(archive):
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


def _members(archive: Path) -> Iterator[tuple[str, str, IO[bytes] | None]]:
    """Each entry's name, why it is no plain file (or nothing), and its content."""
    if zipfile.is_zipfile(archive):
        with zipfile.ZipFile(archive) as opened:
            for info in opened.infolist():
                kind = stat.S_IFMT(info.external_attr >> 16)
                if info.is_dir():
                    continue
                if kind not in (0, stat.S_IFREG):
                    yield info.filename, "it is a link or a device, not a file", None
                elif info.flag_bits & 1:
                    yield info.filename, "it is encrypted", None
                else:
                    with opened.open(info) as stream:
                        yield info.filename, "", stream
        return
    with tarfile.open(archive, "r:*") as pack:
        for member in pack:
            if member.isdir():
                continue
            content = pack.extractfile(member) if member.isreg() else None
            yield member.name, "" if content else "it is a link or a device, not a file", content


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
