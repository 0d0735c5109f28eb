"""Taking submissions in: plain files only, whatever a folder or archive holds; each ends gradable or told why not."""

from __future__ import annotations

import bz2
import io
import json
import os
import shutil
import socket
import stat
import tarfile
import zipfile
from pathlib import Path

import pytest
from small_course import ANSWER, STUB, answered, cell, code, released, write

from autograder.intake.archive import unpack
from autograder.intake.collect import CollectError, Report, original, prepare
from autograder.intake.handin import hook, is_prepared
from autograder.intake.receive import Allowance, receive

SECRET = "the instructor's own solution"


@pytest.fixture
def course(tmp_path: Path) -> Path:
    write(tmp_path / "course" / "release" / "ps" / "ps.ipynb", released())
    (tmp_path / "course" / "source.ipynb").write_text(SECRET)
    return tmp_path / "course"


def hand_in(course: Path, data: bytes | None = None, name: str = "ps.ipynb") -> Path:
    folder = course / "submitted" / "ada" / "ps"
    folder.mkdir(parents=True, exist_ok=True)
    if data is None:
        write(folder / name, answered())
    else:
        (folder / name).write_bytes(data)
    return folder


def collected(course: Path) -> tuple[Report, dict]:
    """The report, and the notebook that will be graded."""
    report = prepare(course, "ps", "ada")
    return report, json.loads((course / "submitted" / "ada" / "ps" / "ps.ipynb").read_text())


def test_a_right_submission_is_taken_in_with_its_files_and_hashes(course: Path) -> None:
    folder = hand_in(course)
    (folder / "data").mkdir()
    (folder / "data" / "x.txt").write_text("1")
    report, notebook = collected(course)
    assert report.refused == report.repairs == []
    assert report.problem == ""
    assert cell(notebook, "double")["source"] == ANSWER
    assert report.received["data/x.txt"] == "6b86b273ff34fce19d6b804eff5a3f5747ada4eaa22f1d49c01e52ddb7875b4b"
    manifest = json.loads((course / ".received" / "ps" / "ada" / "manifest.json").read_text())
    assert manifest["received"] == report.received
    assert (folder / "data" / "x.txt").read_text() == "1"


def test_what_came_in_is_kept_and_a_second_time_changes_nothing(course: Path) -> None:
    broken = answered()
    broken["cells"].remove(cell(broken, "test-two"))
    folder = hand_in(course, json.dumps(broken).encode())
    first, _ = collected(course)
    before = (folder / "ps.ipynb").stat().st_mtime_ns
    second, _ = collected(course)
    assert first == second
    assert first.repairs == ["Cell 'test-two' was missing; it was put back."]
    assert (folder / "ps.ipynb").stat().st_mtime_ns == before
    kept = original(course, "ps", "ada")
    assert kept is not None
    assert json.loads((kept / "ps.ipynb").read_text()) == broken
    assert (kept / "ps.ipynb").stat().st_mode & 0o777 == 0o444


def test_after_a_new_release_it_is_rebuilt_from_what_came_in(course: Path) -> None:
    folder = hand_in(course)
    (folder / "link").symlink_to("/etc/passwd")
    collected(course)
    new = released()
    cell(new, "test-two")["source"] = "assert double(3) == 6"
    write(course / "release" / "ps" / "ps.ipynb", new)
    report, notebook = collected(course)
    assert cell(notebook, "test-two")["source"] == "assert double(3) == 6"
    assert report.refused == ["The file 'link' was refused: it is a symbolic link, not a file."]


def test_a_submission_handed_in_again_takes_the_place_of_the_first(course: Path) -> None:
    hand_in(course, b"")
    assert collected(course)[0].problem == "ps.ipynb: the file is empty"
    hand_in(course)
    report, notebook = collected(course)
    assert report.problem == ""
    assert cell(notebook, "double")["source"] == ANSWER


@pytest.mark.parametrize(
    ("data", "why"),
    [
        (b"", "the file is empty"),
        (b"not json", "it is not JSON: Expecting value at line 1, column 1"),
        (b'{"cells": {}}', "it is JSON, but not a notebook: it has no list of cells"),
        (
            json.dumps({"cells": [code("1", "q1", grade=True)]}).encode(),
            "it holds no cell of this assignment (another notebook under its name?)",
        ),
    ],
)
def test_what_cannot_be_graded_counts_as_unanswered_and_says_why(course: Path, data: bytes, why: str) -> None:
    hand_in(course, data)
    report, notebook = collected(course)
    assert report.problems == {"ps.ipynb": why}
    assert cell(notebook, "double")["source"] == STUB
    told = notebook["cells"][0]["source"]
    assert f"ps.ipynb could not be graded: {why}. It counts as not answered; please hand it in again." in told


def test_a_missing_notebook_and_a_missing_folder_are_told(course: Path) -> None:
    assert collected(course)[0].problems == {"ps.ipynb": "it is missing"}
    hand_in(course, b"hello", "notes.ipynb")
    (course / "submitted" / "ada" / "ps" / "ps.ipynb").unlink()
    assert collected(course)[0].problems == {"ps.ipynb": "it is missing; there is 'notes.ipynb'"}


def test_a_folder_that_has_gone_is_built_again_from_what_was_kept(course: Path) -> None:
    hand_in(course)
    first, _ = collected(course)
    shutil.rmtree(course / "submitted" / "ada")
    again, notebook = collected(course)
    assert again == first
    assert cell(notebook, "double")["source"] == ANSWER


def test_an_earlier_hand_in_is_kept_when_a_later_one_takes_its_place(course: Path) -> None:
    hand_in(course, b"first")
    collected(course)
    first = original(course, "ps", "ada")
    hand_in(course)
    collected(course)
    assert first is not None
    assert original(course, "ps", "ada") != first
    assert (first / "ps.ipynb").read_bytes() == b"first"


def test_a_kept_file_that_somebody_changed_is_never_graded(course: Path) -> None:
    hand_in(course)
    collected(course)
    kept = original(course, "ps", "ada")
    assert kept is not None
    (kept / "ps.ipynb").chmod(0o644)
    (kept / "ps.ipynb").write_text("{}")
    shutil.rmtree(course / "submitted" / "ada")
    with pytest.raises(CollectError, match="is not what ada handed in any more"):
        collected(course)


def test_windows_line_ends_are_no_change_by_the_learner(course: Path) -> None:
    notebook = answered()
    for one in notebook["cells"]:
        one["source"] = one["source"].replace("\n", "\r\n")
    one["metadata"] = {}  # the last cell is found by its text
    hand_in(course, json.dumps(notebook).encode())
    report, _ = collected(course)
    assert [line for line in report.repairs if "had been changed" in line or "missing" in line] == []


def test_folders_are_counted(course: Path) -> None:
    folder = hand_in(course)
    for number in range(3000):
        (folder / f"empty-{number}").mkdir()
    report, notebook = collected(course)
    assert "there are more than 500 folders" in report.refused[0]
    assert cell(notebook, "double")["source"] == ANSWER
    assert len(list(folder.iterdir())) <= 501


def test_a_renamed_notebook_gets_its_name_back(course: Path) -> None:
    hand_in(course, name="ps (1).ipynb")
    report, notebook = collected(course)
    assert report.problem == ""
    assert report.repairs == ["The notebook was called 'ps (1).ipynb'; it was given its name ps.ipynb back."]
    assert cell(notebook, "double")["source"] == ANSWER


def test_a_link_to_the_instructors_notebook_is_refused_and_not_read(course: Path) -> None:
    folder = hand_in(course)
    (folder / "ps.ipynb").unlink()
    (folder / "ps.ipynb").symlink_to(course / "source.ipynb")
    report, notebook = collected(course)
    assert report.refused == ["The file 'ps.ipynb' was refused: it is a symbolic link, not a file."]
    assert SECRET not in json.dumps(notebook)
    assert not (folder / "ps.ipynb").is_symlink()
    assert (course / "source.ipynb").read_text() == SECRET


def test_a_linked_submission_folder_is_refused(course: Path, tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    write(tmp_path / "elsewhere" / "ps.ipynb", answered())
    (course / "submitted" / "ada").mkdir(parents=True)
    (course / "submitted" / "ada" / "ps").symlink_to(tmp_path / "elsewhere")
    report, _ = collected(course)
    assert report.refused == ["The submission's folder was refused: it is a link."]
    assert (tmp_path / "elsewhere" / "ps.ipynb").exists()


def test_links_devices_pipes_sockets_and_odd_names_are_refused_each_with_its_reason(tmp_path: Path) -> None:
    source = tmp_path / "in"
    source.mkdir()
    (tmp_path / "secret").write_text(SECRET)
    os.link(tmp_path / "secret", source / "hard")
    (source / "soft").symlink_to(tmp_path / "secret")
    (source / "folder").symlink_to(tmp_path)
    os.mkfifo(source / "pipe")
    (source / "new\nline").touch()
    (source / "back\\slash").touch()
    with socket.socket(socket.AF_UNIX) as local:
        local.bind(str(source / "socket"))
    expected = 7
    if os.geteuid() == 0:
        os.mknod(source / "device", stat.S_IFCHR | 0o666, os.makedev(1, 5))
        expected += 1
    hashes, refused = receive(source, tmp_path / "out")
    assert hashes == {}
    assert len(refused) == expected
    assert "The file 'hard' was refused: it is a hard link: the same file stands under another name too." in refused
    assert "The file 'pipe' was refused: it is a device, a pipe or a socket, not a file." in refused
    assert (
        "The file 'new?line' was refused: its name holds characters that names of files should not hold, "
        in " ".join(refused)
    )
    assert list((tmp_path / "out").iterdir()) == []


def test_what_is_too_large_too_many_or_too_deep_is_refused(tmp_path: Path) -> None:
    source = tmp_path / "in"
    (source / "a" / "b" / "c").mkdir(parents=True)
    (source / "a" / "b" / "c" / "deep").touch()
    for name in "pqrs":
        (source / name).write_bytes(b"12345")
    with (source / "sparse").open("wb") as file:
        file.truncate(10**12)
    hashes, refused = receive(source, tmp_path / "out", Allowance(file=10, total=12, files=3, depth=2))
    assert list(hashes) == ["p", "q"]
    assert refused[0].startswith("The file 'r' was refused: it is too large")
    assert "'sparse'" in refused[2]
    assert refused[3] == "The file 'a/b/c' was refused: folders lie more than 2 deep."


def test_an_assignment_that_was_not_released_is_an_error(course: Path) -> None:
    with pytest.raises(CollectError, match="run `nbgrader generate_assignment other` first"):
        prepare(course, "other", "ada")


def test_nbgraders_hook_makes_the_submission_canonical_and_finds_the_renamed_file(
    course: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("autograder.intake.handin._PREPARED", set())
    folder = hand_in(course, name="mine.ipynb")
    notebooks = [str(folder / "mine.ipynb")]
    assert not is_prepared("ps", "ada")
    hook(course)(assignment="ps", student="*", notebooks=notebooks)
    assert notebooks == [str(folder / "ps.ipynb")]
    assert is_prepared("ps", "ada")


def make_zip(path: Path, members: dict[str, bytes], links: dict[str, str] | None = None) -> Path:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in members.items():
            archive.writestr(name, data)
        for name, target in (links or {}).items():
            info = zipfile.ZipInfo(name)
            info.external_attr = (stat.S_IFLNK | 0o777) << 16
            archive.writestr(info, target)
    return path


def test_a_zip_file_is_unpacked_inside_its_folder_only(tmp_path: Path) -> None:
    good = {"ps.ipynb": b"{}", "data/x.txt": b"1"}
    bad = {"../out.txt": b"1", "/abs.txt": b"1", "a/../../up": b"1", "C:x": b"1", "PS.ipynb": b"again"}
    archive = make_zip(tmp_path / "hand-in.zip", good | bad, {"link": "/etc/passwd"})
    refused = unpack(archive, tmp_path / "out" / "in")
    found = {path.relative_to(tmp_path / "out").as_posix() for path in (tmp_path / "out").rglob("*") if path.is_file()}
    assert found == {"in/ps.ipynb", "in/data/x.txt"}
    assert len(refused) == 6
    assert "The file '../out.txt' of the archive was refused: its name leads out of the folder." in refused
    assert "The file 'link' of the archive was refused: it is a link or a device, not a file." in refused
    assert "The file 'PS.ipynb' of the archive was refused: the archive holds that name twice." in refused


def test_a_zip_bomb_stops_at_what_a_submission_may_hold(tmp_path: Path) -> None:
    archive = make_zip(tmp_path / "bomb.zip", {f"{i}": bytes(10**6) for i in range(20)})
    assert archive.stat().st_size < 50_000
    refused = unpack(archive, tmp_path / "out", Allowance(file=10**6, total=3 * 10**6))
    assert sum(path.stat().st_size for path in (tmp_path / "out").iterdir()) == 3 * 10**6
    assert "larger than a submission may be" in refused[0]


def test_a_tar_file_with_links_devices_and_paths_out_is_unpacked_without_them(tmp_path: Path) -> None:
    with tarfile.open(tmp_path / "x.tar.gz", "w:gz") as archive:
        for name, kind in (("ps.ipynb", tarfile.REGTYPE), ("l", tarfile.SYMTYPE), ("h", tarfile.LNKTYPE),
                           ("d", tarfile.CHRTYPE), ("../up", tarfile.REGTYPE)):  # fmt: skip
            info = tarfile.TarInfo(name)
            info.type, info.linkname = kind, "/etc/passwd"
            info.size = 2 if kind == tarfile.REGTYPE else 0
            archive.addfile(info, io.BytesIO(b"{}") if info.size else None)
    refused = unpack(tmp_path / "x.tar.gz", tmp_path / "out" / "in")
    assert [path.name for path in (tmp_path / "out").rglob("*") if path.is_file()] == ["ps.ipynb"]
    assert len(refused) == 4


@pytest.mark.parametrize("data", [b"", b"not an archive", b"PK\x05\x06" + bytes(18), b"\x1f\x8b\x08\x00broken"])
def test_a_broken_archive_is_told_not_raised(tmp_path: Path, data: bytes) -> None:
    (tmp_path / "x.zip").write_bytes(data)
    assert isinstance(unpack(tmp_path / "x.zip", tmp_path / "out"), list)
    assert list((tmp_path / "out").iterdir()) == []


def test_a_zip_file_with_backslashes_is_taken_in_as_windows_meant_it(tmp_path: Path) -> None:
    archive = make_zip(tmp_path / "w.zip", {"work/ps.ipynb": b"{}", "work/data/x.txt": b"1", "up/../../out": b"1"})
    archive.write_bytes(archive.read_bytes().replace(b"work/data/", b"work\\data\\").replace(b"up/../", b"up\\..\\"))
    refused = unpack(archive, tmp_path / "out")
    found = {path.relative_to(tmp_path / "out").as_posix() for path in (tmp_path / "out").rglob("*") if path.is_file()}
    assert found == {"work/ps.ipynb", "work/data/x.txt"}
    assert refused == ["The file 'up/../../out' of the archive was refused: its name leads out of the folder."]


def test_a_pax_header_that_claims_an_exabyte_is_told(tmp_path: Path) -> None:
    info = tarfile.TarInfo("x")
    info.type, info.size = tarfile.XHDTYPE, 2**50
    (tmp_path / "x.tar").write_bytes(info.tobuf(tarfile.GNU_FORMAT) + bytes(1024))
    (told,) = unpack(tmp_path / "x.tar", tmp_path / "out")
    assert "'x.tar' cannot be read to its end" in told


def test_a_compressed_tar_file_is_read_no_further_than_a_submission_may_be_large(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    out = 0
    read = bz2.BZ2File.read

    def counted(self: bz2.BZ2File, size: int = -1) -> bytes:
        nonlocal out
        block = read(self, size)
        out += len(block)
        return block

    monkeypatch.setattr(bz2.BZ2File, "read", counted)
    with tarfile.open(tmp_path / "x.tar.bz2", "w:bz2") as archive:
        info = tarfile.TarInfo("large")
        info.size = 60 * 10**6
        archive.addfile(info, io.BytesIO(bytes(info.size)))
    (told,) = unpack(tmp_path / "x.tar.bz2", tmp_path / "out", Allowance(file=10**6, total=10**6))[-1:]
    assert "more comes out of it than a submission may hold" in told
    assert out <= 12 * 10**6


def test_a_zip_member_that_would_come_out_all_at_once_is_refused(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "x.zip", "w", zipfile.ZIP_BZIP2) as archive:
        archive.writestr("ps.ipynb", b"{}")
    assert "compressed in an unusual way" in unpack(tmp_path / "x.zip", tmp_path / "out")[0]
