"""When a submission arrived.

The one idea: the time in a submission's `timestamp.txt`, and in the name of its folder in the exchange, is written by
the learner. The file system's own time of the last change (ctime) is not: it cannot be set, and moving, copying or
touching a file only makes it later. So that is what counts when nbgrader collects, and `timestamp.txt` is put right;
from then on all of nbgrader counts from a time in a folder that no learner can write to.
"""

from __future__ import annotations

import os
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

FILE = "timestamp.txt"
_SAME = timedelta(seconds=60)  # between what nbgrader's submit writes down and when it has written it


def arrival(folder: Path) -> float | None:
    """Seconds since 1970 of the last change in a folder that a learner can write to; None if it cannot be seen.

    No link is followed.
    """
    try:
        times = [os.lstat(folder).st_ctime]
        for here, folders, names in os.walk(folder):
            times += [os.lstat(os.path.join(here, name)).st_ctime for name in [*folders, *names]]
    except OSError:
        return None
    return max(times)


def settle(folder: Path, seen: float | None) -> list[str]:
    """Put `timestamp.txt` in a folder that was taken in right, in sentences.

    `seen` is the arrival in the exchange; None where the submission came another way and its time is the instructor's.
    """
    path = folder / FILE
    claimed, notes = _claimed(path), []
    if claimed is None and path.exists():
        notes.append(f"The file {FILE} held no time; it was removed.")
        path.unlink()
    if seen is not None:
        arrived = datetime.fromtimestamp(seen, UTC).replace(tzinfo=None)
        if claimed is None or abs(claimed - arrived) > _SAME:
            path.write_text(f"{arrived} UTC", encoding="utf-8")
            if claimed is not None:
                said = f"{claimed:%Y-%m-%d %H:%M:%S}", f"{arrived:%Y-%m-%d %H:%M:%S}"
                notes.append(f"The time of the submission was given as {said[0]} UTC; its files are of {said[1]} UTC.")
    return notes


def _claimed(path: Path) -> datetime | None:
    from nbgrader.utils import parse_utc

    try:
        found: Any = parse_utc(path.read_text(encoding="utf-8")[:100].strip())
    except (OSError, ValueError, OverflowError, TypeError):
        return None
    return found if isinstance(found, datetime) else None
