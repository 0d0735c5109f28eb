"""Where a grading run's random inputs come from.

The seed is made from the course's own secret and from what was handed in, so that nobody can know the
inputs before, the same submission gets the same ones when it is graded again, and a changed one gets fresh ones.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import secrets
from pathlib import Path

_FILE = Path(".autograder") / "secret"


def seed(course: Path, *parts: str) -> int:
    """A number below 2**53 from the course's secret, which is drawn at its first use, and from `parts`."""
    digest = hashlib.sha256(_secret(course / _FILE))
    for part in parts:
        digest.update(hashlib.sha256(part.encode("utf-8", "replace")).digest())
    return int.from_bytes(digest.digest()[:8], "big") >> 11


def _secret(path: Path) -> bytes:
    path.parent.mkdir(parents=True, exist_ok=True)
    if not path.exists():
        (path.parent / ".gitignore").write_text("*\n")
        # Another process may do the same: whoever is first wins, and nobody sees half a file.
        fresh = path.with_name(f"secret-{os.getpid()}-{secrets.token_hex(4)}")
        fresh.write_text(secrets.token_hex(32))
        fresh.chmod(0o600)
        with contextlib.suppress(FileExistsError):
            os.link(fresh, path)
        fresh.unlink()
    return path.read_bytes()
