"""The exchange's doors: what a learner could take over is found, and told with the command that mends it."""

from __future__ import annotations

from pathlib import Path

import pytest

from autograder.course import exchange


@pytest.fixture
def course(tmp_path: Path) -> Path:
    """A course whose exchange is as nbgrader leaves it after a release and released feedback."""
    root = tmp_path / "course"
    root.mkdir()
    (root / "nbgrader_config.py").write_text(
        f"c = get_config()\nc.CourseDirectory.course_id = 'serving'\nc.Exchange.root = {str(tmp_path / 'exchange')!r}\n"
    )
    exchange.make(tmp_path / "exchange")
    for name, mode in (("", 0o755), ("outbound", 0o755), ("inbound", 0o2733), ("feedback", 0o711)):
        folder = tmp_path / "exchange" / "serving" / name
        folder.mkdir()
        folder.chmod(mode)
    return root


def test_an_exchange_as_it_should_be_has_no_problem(course: Path) -> None:
    assert oct((course.parent / "exchange").stat().st_mode & 0o7777) == "0o1777"
    assert exchange.problems(course) == []


@pytest.mark.parametrize(
    ("name", "mode", "wanted"),
    [
        ("", 0o777, "1777"),
        ("", 0o755, "1777"),
        ("serving", 0o777, "755"),
        ("serving/outbound", 0o775, "755"),
        ("serving/inbound", 0o777, "733"),
        ("serving/feedback", 0o755, "711"),
    ],
)
def test_each_wrong_mode_is_named_with_the_command_that_mends_it(
    course: Path, name: str, mode: int, wanted: str
) -> None:
    path = course.parent / "exchange" / name
    path.chmod(mode)
    (problem,) = exchange.problems(course)
    assert problem == f"{path} has mode {mode:o}, not {wanted}: chmod {wanted} {path}"


def test_a_course_folder_that_is_a_link_was_put_there_by_somebody(course: Path) -> None:
    path = course.parent / "exchange" / "serving"
    path.rename(path.with_name("moved-away"))
    path.symlink_to(path.with_name("moved-away"))
    assert f"{path} is no folder: somebody put something else in its place" in exchange.problems(course)


def test_a_released_file_that_others_can_write_is_named(course: Path) -> None:
    released = course.parent / "exchange" / "serving" / "outbound" / "ps.ipynb"
    released.write_text("{}")
    released.chmod(0o666)
    (problem,) = exchange.problems(course)
    assert problem == f"others could change {released}: chmod go-w {released} (and look at what is in it)"


def test_an_exchange_inside_the_course_folder_is_a_problem(course: Path) -> None:
    config = course / "nbgrader_config.py"
    config.write_text(f"c = get_config()\nc.Exchange.root = {str(course / 'exchange')!r}\n")
    (problem,) = exchange.problems(course)
    assert problem == (
        f"the exchange {course / 'exchange'} lies in the course folder {course}, where nobody else may enter: "
        f"name a folder elsewhere in {config} (c.Exchange.root)"
    )


def test_the_courses_own_configuration_names_an_exchange_outside_its_folder(tmp_path: Path) -> None:
    from traitlets.config import PyFileConfigLoader

    source = Path(__file__).resolve().parents[3] / "exercises" / "nbgrader_config.py"
    (tmp_path / "serving").mkdir()
    (tmp_path / "serving" / "nbgrader_config.py").write_text(source.read_text(encoding="utf-8"))
    config = PyFileConfigLoader("nbgrader_config.py", path=str(tmp_path / "serving")).load_config()
    assert config.Exchange.root == str(tmp_path / "serving-exchange")
