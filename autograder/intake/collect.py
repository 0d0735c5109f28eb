"""Takes in what learners hand in: only plain files of a bounded size, and notebooks rebuilt on the released ones.

A submission is never used where it lies. Its plain files are read once, without following a link, into a fresh folder
and kept beside the course under the hash of their content; each notebook is rebuilt (canonical.py); the result takes
the submission's place. A notebook that cannot be used is replaced by one without answers that says why, so each
submission ends with a score. nbgrader's `collect`, `zip_collect` and `autograde` all pass through here once the
course's `nbgrader_config.py` says

    from autograder import collect
    collect.use(c, root)
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
from dataclasses import asdict, dataclass, field
from pathlib import Path

from autograder.course.source import Notebook
from autograder.intake import arrival
from autograder.intake.canonical import RefusedError, canonical, parse, quoted, stub, with_note
from autograder.intake.owner import owned
from autograder.intake.receive import receive

RECEIVED = ".received"  # in the course's folder: what came in, as it came, and the hashes
_MANIFEST = "manifest.json"
_NOTE = "What was put right when this notebook was collected"
_MOST_ENTRIES = 2000  # of a folder that was taken in; see Allowance


@dataclass(frozen=True)
class Report:
    """What became of a submission: one sentence for each repair, and for each file that was refused.

    `problems` says for a notebook why it counts as not answered; empty if every notebook is graded.
    """

    refused: list[str] = field(default_factory=list)
    repairs: list[str] = field(default_factory=list)
    problems: dict[str, str] = field(default_factory=dict)
    received: dict[str, str] = field(default_factory=dict)  # file -> SHA-256, as handed in
    canonical: dict[str, str] = field(default_factory=dict)  # file -> SHA-256, as graded
    arrived: float | None = None  # seconds since 1970; None if it did not come through the exchange
    doubts: list[str] = field(default_factory=list)  # what the instructor has to decide; learners are not told

    @property
    def problem(self) -> str:
        return "; ".join(f"{name}: {why}" for name, why in self.problems.items())


class CollectError(Exception):
    """The course is not ready to take submissions in; the message says what is missing."""


def prepare(
    root: Path, assignment: str, student: str, source: Path | None = None, arrived: float | None = None
) -> Report:
    """Make `submitted/STUDENT/ASSIGNMENT` of the course in `root` canonical, from `source` or from what lies there.

    `arrived` is when it came in, in seconds since 1970, if that was seen. Done once: a submission that is as this
    function left it is only looked at, unless the release has changed. A folder that has gone is built again from what
    was kept. Raises CollectError if the assignment was not released, or if the kept original is not what it was; never
    because of what a submission holds.

    Wherever this is killed, calling it again gives the same result: each file is complete before a rename gives it its
    name, and `next.json` says what is about to be put in place before anything is moved.
    """
    with owned(root, assignment, student):
        return _prepare(root, assignment, student, source, arrived)


def original(root: Path, assignment: str, student: str) -> Path | None:
    """The folder of what came in, as it came; None if nothing was taken in. Nobody may write there."""
    record = root / RECEIVED / assignment / student
    entry = _load(record / _MANIFEST)
    return record / entry.original if entry and (record / entry.original).is_dir() else None


@dataclass(frozen=True)
class _Entry:
    """What a manifest says. `original` is a folder beside it, `release` the hash of the release that was built on."""

    report: Report
    release: str
    original: str


def _prepare(root: Path, assignment: str, student: str, source: Path | None, arrived: float | None) -> Report:
    released = _releases(root, assignment)
    version = hashlib.sha256(json.dumps(released, sort_keys=True).encode()).hexdigest()
    target, record = root / "submitted" / student / assignment, root / RECEIVED / assignment / student
    manifest, announced = record / _MANIFEST, record / "next.json"
    fresh, old = (target.with_name(f".{assignment}.{kind}") for kind in ("fresh", "old"))
    for path in (record, target.parent):
        path.mkdir(parents=True, exist_ok=True)
    for left in (fresh, old):
        _clear(left)

    before, coming = _load(manifest), _load(announced)
    again = None
    if source is None:
        there = _hashes(target) if os.path.lexists(target) else None
        if coming and there == coming.report.canonical:  # killed after it had put everything in place
            os.replace(announced, manifest)
            before, coming = coming, None
        if before and there == before.report.canonical:
            if before.release == version:
                return before.report
            again = before
        elif there is None:  # deleted, or killed between two renames
            again = coming or before
        source = record / again.original if again else target

    received, refused = receive(source, fresh)
    if again:
        refused, arrived = again.report.refused, again.report.arrived
        if received != again.report.received:
            raise CollectError(f"{source} is not what {student} handed in any more: a kept file was changed or deleted")
    kept = again.original if again else _keep(fresh, record, received)
    time_repairs, doubts = arrival.settle(fresh, arrived)
    repairs, problems = _rebuild(fresh, released, remember_release(root, assignment), [*refused, *time_repairs])
    report = Report(refused, [*time_repairs, *repairs], problems, received, _hashes(fresh), arrived, doubts)

    about = {**asdict(report), "release": version, "original": kept}
    unfinished = record / "next.json.tmp"
    unfinished.write_text(json.dumps(about, indent=1), encoding="utf-8")
    os.replace(unfinished, announced)
    if os.path.lexists(target):
        os.rename(target, old)
    os.rename(fresh, target)
    os.replace(announced, manifest)
    _clear(old)
    return report


def _keep(folder: Path, record: Path, received: dict[str, str]) -> str:
    """Keep what came in, under the hash of its content, written once; returns its place below `record`."""
    place = f"originals/{hashlib.sha256(json.dumps(received, sort_keys=True).encode()).hexdigest()[:32]}"
    if not (record / place).is_dir():
        unfinished = record / "originals" / "unfinished"
        _clear(unfinished)
        shutil.copytree(folder, unfinished)
        for path in unfinished.rglob("*"):
            if path.is_file():
                path.chmod(0o444)
        os.rename(unfinished, record / place)
    return place


def _rebuild(
    folder: Path, released: dict[str, Notebook], earlier: list[dict[str, Notebook]], notes: list[str]
) -> tuple[list[str], dict[str, str]]:
    """Put a canonical notebook in the place of each expected one; returns the repairs and the problems.

    `earlier` are all versions that learners may have been given.
    """
    repairs: list[str] = []
    problems: dict[str, str] = {}
    renamed = _rename(folder, released)
    for name, release in released.items():
        path = folder / f"{name}.ipynb"
        mine = [renamed[name]] if name in renamed else []
        try:
            if not path.is_file():
                refused = next((note for note in notes if quoted(path.name) in note), "")
                others = ", ".join(sorted(quoted(other.name) for other in folder.glob("*.ipynb")))
                raise RefusedError(refused or "it is missing" + (f"; there is {others}" if others else ""))
            given = [version[name] for version in earlier if name in version]
            result = canonical(parse(path.read_bytes()), release, given)
            notebook = result.notebook
            mine += result.repairs
        except RefusedError as error:
            notebook = stub(release)
            problems[path.name] = str(error).rstrip(".")
            why = str(error).rstrip(".")
            mine = [f"{path.name} could not be graded: {why}. It counts as not answered; please hand it in again."]
        repairs += mine
        everything = [_plain(line) for line in [*notes, *mine]]
        _clear(path)
        path.write_text(json.dumps(with_note(notebook, _NOTE, everything), indent=1), encoding="utf-8")
    return repairs, problems


def _rename(folder: Path, released: dict[str, Notebook]) -> dict[str, str]:
    """Where one notebook is missing and another file clearly is it, give that file the right name; a sentence each."""
    said = {}
    spare = {path for path in folder.glob("*.ipynb") if path.stem not in released and path.is_file()}
    for name, release in released.items():
        if (folder / f"{name}.ipynb").exists():
            continue
        fitting = []
        for path in sorted(spare):
            try:
                canonical(parse(path.read_bytes()), release)
            except RefusedError:
                continue
            fitting.append(path)
        if len(fitting) == 1:
            spare.remove(fitting[0])
            was = quoted(fitting[0].name)
            said[name] = f"The notebook was called {was}; it was given its name {name}.ipynb back."
            fitting[0].rename(folder / f"{name}.ipynb")
    return said


def _releases(root: Path, assignment: str) -> dict[str, Notebook]:
    folder = root / "release" / assignment
    found = {path.stem: json.loads(path.read_text(encoding="utf-8")) for path in sorted(folder.glob("*.ipynb"))}
    if not found:
        raise CollectError(f"{folder} holds no notebook: run `nbgrader generate_assignment {assignment}` first")
    return found


def remember_release(root: Path, assignment: str) -> list[dict[str, Notebook]]:
    """Keep the released notebooks as they are now; returns every version kept so far.

    A learner who fetched an earlier version has changed nothing that only the course changed since.
    """
    folder = root / RECEIVED / assignment / ".versions"
    text = json.dumps(_releases(root, assignment), sort_keys=True)
    path = folder / f"{hashlib.sha256(text.encode()).hexdigest()}.json"
    if not path.exists():
        folder.mkdir(parents=True, exist_ok=True)
        fresh = path.with_suffix(f".{os.getpid()}")
        fresh.write_text(text, encoding="utf-8")
        os.replace(fresh, path)
    return [json.loads(version.read_text(encoding="utf-8")) for version in sorted(folder.glob("*.json"))]


def _load(manifest: Path) -> _Entry | None:
    try:
        content = json.loads(manifest.read_text(encoding="utf-8"))
        version, kept = content.pop("release"), content.pop("original", "original")
        return _Entry(Report(**content), version, kept)
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return None


def _hashes(folder: Path) -> dict[str, str]:
    """Hashes of a folder's files; a link or anything odd makes it differ from every canonical folder."""
    found: dict[str, str] = {}
    entries = 0
    for here, folders, names in os.walk(folder):
        entries += len(folders) + len(names)
        if entries > _MOST_ENTRIES:
            return {"": "not canonical"}
        for name in [*folders, *names]:
            path = Path(here) / name
            if path.is_symlink() or (name in names and not path.is_file()):
                return {"": "not canonical"}
        for name in names:
            path = Path(here) / name
            found[path.relative_to(folder).as_posix()] = hashlib.sha256(path.read_bytes()).hexdigest()
    return dict(sorted(found.items()))


def _clear(target: Path) -> None:
    if target.is_symlink() or target.is_file():
        target.unlink()
    else:
        shutil.rmtree(target, ignore_errors=True)


def _plain(line: str) -> str:
    """Safe inside Markdown: names are already reduced to plain characters."""
    return line.replace("_", "\\_").replace("*", "\\*")
