"""When a submission was handed in, and whether its files say otherwise.

nbgrader's submit writes the time into `timestamp.txt`, in a folder that stays the learner's. So the time can be wrong;
but what could prove it wrong, the file system's time of the last change, is moved by anybody's `chmod -R`, by a backup
put back, by a change of owner. Neither decides on points by itself: the time that a submission states counts, and where
its files were changed later the instructor is told and decides.
"""

from __future__ import annotations

import os
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

FILE = "timestamp.txt"
_SAME = timedelta(seconds=60)  # between what nbgrader's submit writes down and when it has written it
_DECIDE = f"To count another time, write it into {FILE} of the submitted folder and autograde again."


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


def settle(folder: Path, seen: float | None) -> tuple[list[str], list[str]]:
    """Look at `timestamp.txt` in a folder that was taken in; a file that holds no time is removed.

    `seen` is the last change in the exchange, in seconds since 1970; None where the submission came another way.
    Returns what was put right, for the learner too, and what the instructor has to decide, a sentence each.
    """
    path = folder / FILE
    claimed, repairs, doubts = _claimed(path), [], []
    if claimed is None and path.exists():
        repairs.append(f"The file {FILE} held no time; it was removed.")
        path.unlink()
    if seen is not None:
        changed = datetime.fromtimestamp(seen, UTC).replace(tzinfo=None)
        if claimed is None:
            doubts.append(
                f"It states no time of submission; its files were last changed at {_shown(changed)}. {_DECIDE}"
            )
        elif changed - claimed > _SAME:
            doubts.append(
                f"It states {_shown(claimed)} as the time of submission, which counts; its files were changed until "
                f"{_shown(changed)} (by the learner, or by whoever copied them or set their modes). {_DECIDE}"
            )
    return repairs, doubts


def _shown(time: datetime) -> str:
    return f"{time:%Y-%m-%d %H:%M:%S} UTC"


def _claimed(path: Path) -> datetime | None:
    from nbgrader.utils import parse_utc

    try:
        found: Any = parse_utc(path.read_text(encoding="utf-8")[:100].strip())
    except (OSError, ValueError, OverflowError, TypeError):
        return None
    return found if isinstance(found, datetime) else None
