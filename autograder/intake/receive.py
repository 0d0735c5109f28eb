"""Copies what a learner handed in: plain files only, each judged after it was opened, and no more than is allowed."""

from __future__ import annotations

import hashlib
import os
import stat
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from autograder.intake.canonical import quoted


@dataclass(frozen=True)
class Allowance:
    """How much one submission may hold. Bytes and counts."""

    file: int = 50 * 10**6
    total: int = 100 * 10**6
    files: int = 500
    folders: int = 500
    depth: int = 8


def receive(source: Path, target: Path, allowance: Allowance | None = None) -> tuple[dict[str, str], list[str]]:
    """Copy a submission's plain files to the new folder `target`: hashes of what was copied, and what was refused.

    No link is followed, also not one that appears while this runs: each file is judged after it was opened. Refused,
    each with a sentence: symbolic and hard links, devices, pipes, strange names, what is too deep, large or many.
    """
    hashes: dict[str, str] = {}
    refused: list[str] = []
    target.mkdir(parents=True)
    try:
        handle = os.open(source, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
    except FileNotFoundError:
        return hashes, refused
    except OSError as error:
        why = "it is a link" if source.is_symlink() else str(error.strerror)
        refused.append(f"The submission's folder was refused: {why}.")
        return hashes, refused
    try:
        _Receiver(target, allowance or Allowance(), hashes, refused).folder(handle, "", 0)
    finally:
        os.close(handle)
    return hashes, refused


@dataclass
class _Receiver:
    target: Path
    allowance: Allowance
    hashes: dict[str, str]
    refused: list[str]
    total: int = 0
    folders: int = 0

    def folder(self, handle: int, inside: str, depth: int) -> None:
        with os.scandir(handle) as entries:  # files first: a thousand folders must not stand before the notebook
            names = [name for _, name in sorted((entry.is_dir(follow_symlinks=False), entry.name) for entry in entries)]
        for name in names:
            path = f"{inside}{name}"
            if len(self.refused) > 50:
                return
            if name == ".ipynb_checkpoints":
                continue
            try:
                why = self.entry(handle, name, path, depth)
            except OSError as error:
                why = f"it cannot be read ({error.strerror})"
            if why:
                self.refused.append(f"The file {quoted(path)} was refused: {why}.")

    def entry(self, handle: int, name: str, path: str, depth: int) -> str:
        """Take one entry in; returns why not, or nothing."""
        if not name.isprintable() or "\\" in name or len(name.encode(errors="replace")) > 200:
            return "its name holds characters that names of files should not hold, or is too long"
        kind = os.stat(name, dir_fd=handle, follow_symlinks=False).st_mode
        if stat.S_ISLNK(kind):
            return "it is a symbolic link, not a file"
        if stat.S_ISDIR(kind):
            if depth >= self.allowance.depth:
                return f"folders lie more than {self.allowance.depth} deep"
            self.folders += 1
            if self.folders > self.allowance.folders:
                return f"there are more than {self.allowance.folders} folders"
            inner = os.open(name, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW, dir_fd=handle)
            try:
                (self.target / path).mkdir()
                self.folder(inner, f"{path}/", depth + 1)
            finally:
                os.close(inner)
            return ""
        if not stat.S_ISREG(kind):
            return "it is a device, a pipe or a socket, not a file"
        file = os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK, dir_fd=handle)
        with os.fdopen(file, "rb") as reader:
            return self.file(reader, path)

    def file(self, reader: BinaryIO, path: str) -> str:
        """Copy an open file; the limits are kept by what was read, not by what the file says of itself."""
        about = os.fstat(reader.fileno())
        if not stat.S_ISREG(about.st_mode):
            return "it is not a plain file"
        if about.st_nlink > 1:
            return "it is a hard link: the same file stands under another name too"
        if len(self.hashes) >= self.allowance.files:
            return f"there are more than {self.allowance.files} files"
        most = min(self.allowance.file, self.allowance.total - self.total)
        data = reader.read(most + 1) if about.st_size <= most else None
        if data is None or len(data) > most:
            return f"it is too large: {most / 1e6:.0f} MB are left of what a submission may hold"
        self.total += len(data)
        (self.target / path).write_bytes(data)
        self.hashes[path] = hashlib.sha256(data).hexdigest()
        return ""
