"""The exchange: the folder through which an instructor's and the learners' notebooks travel, with closed doors.

Everybody may make folders in its root, so the root needs the sticky bit (mode 1777): without it a learner can rename
the course's folder, put another one in its place and read what the class hands in. And it has to lie outside the course
folder, since whoever may enter that reads hidden tests and the gradebook.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from pathlib import Path

from autograder.course import CONFIG

_ROOT = 0o1777
_BELOW = {"": 0o755, "outbound": 0o755, "inbound": 0o733, "feedback": 0o711}  # as nbgrader makes them


def make(root: Path) -> None:
    """Make an exchange's root, if there is none, with the mode that it needs."""
    if not root.is_dir():
        root.mkdir(parents=True)
        root.chmod(_ROOT)


def problems(course: Path) -> list[str]:
    """What is open in the exchange that a course's configuration names, each with the way to mend it.

    Empty also where the configuration names none, or one that is not made yet.
    """
    from traitlets.config import PyFileConfigLoader

    config = PyFileConfigLoader(CONFIG, path=str(course.resolve())).load_config()
    if not config.Exchange.get("root"):
        return []
    root, inside = Path(config.Exchange.root), course.resolve()
    found = []
    if root.resolve().is_relative_to(inside):
        found.append(
            f"the exchange {root} lies in the course folder {inside}, where nobody else may enter: "
            f"name a folder elsewhere in {inside / CONFIG} (c.Exchange.root)"
        )
    if root.is_dir():
        shared = bool(config.CourseDirectory.get("groupshared", False))
        found += _wrong(root, _ROOT, 0o1777)
        if name := config.CourseDirectory.get("course_id"):
            found += _wrong_modes(root / name, shared)
    return found


def _wrong_modes(course: Path, shared: bool) -> Iterator[str]:
    """Look at a course's folder in the exchange. `shared`: the instructors' group may do all, so its bits are free."""
    looked_at = 0o707 if shared else 0o777
    for name, mode in _BELOW.items():
        if os.path.lexists(course / name):
            yield from _wrong(course / name, mode, looked_at)
    for name in ("outbound", "feedback"):
        for here, folders, files in os.walk(course / name):
            for path in (Path(here) / one for one in [*folders, *files]):
                about = path.lstat()
                writable = 0o002 if shared else 0o022
                if stat.S_ISLNK(about.st_mode) or about.st_mode & writable:
                    yield f"others could change {path}: chmod go-w {path} (and look at what is in it)"


def _wrong(path: Path, mode: int, looked_at: int) -> Iterator[str]:
    about = path.lstat()
    if not stat.S_ISDIR(about.st_mode):
        yield f"{path} is no folder: somebody put something else in its place"
        return
    if about.st_uid not in (0, os.geteuid()):
        yield f"{path} belongs to user {about.st_uid}, not to you: that user can take it over"
    if (about.st_mode ^ mode) & looked_at:
        yield f"{path} has mode {stat.S_IMODE(about.st_mode):o}, not {mode:o}: chmod {mode:o} {path}"
