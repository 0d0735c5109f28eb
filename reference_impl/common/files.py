"""Writes a file so that nobody ever meets half of it."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def written_whole(path: Path) -> Iterator[Path]:
    """A path to write to; it replaces `path` at the end, so a reader or a crash meets the old file or the new one."""
    part = path.with_name(path.name + ".part")
    yield part
    os.replace(part, path)
