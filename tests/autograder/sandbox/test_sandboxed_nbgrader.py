"""nbgrader's own steps with the sandbox switched on by the course's configuration, and closed where it is missing."""

from __future__ import annotations

import copy
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from small_course import answered, cell, code, released, write

from autograder.course.course import Course, open_nbgrader
from autograder.intake.handin import is_prepared
from autograder.proof import release

pytestmark = pytest.mark.filterwarnings("ignore::sqlalchemy.exc.SAWarning")

CONFIG = """
from pathlib import Path
from autograder import collect, kernelspec

c = get_config()
root = Path(__file__).resolve().parent
c.CourseDirectory.course_id = "small"
c.CourseDirectory.root = str(root)
c.Exchange.root = str(root / "exchange")
c.Exchange.cache = str(root / "cache")
c.Exchange.path_includes_course = False
c.Execute.kernel_name = kernelspec.ensure(root)
c.Execute.timeout = 30
c.Execute.extra_arguments = ["--log-level=40"]
collect.use(c, root)
"""

# Each line of a dishonest cell that succeeds is printed.
ATTACK = """
import os, socket, sqlite3
def attempt(name, function):
    try:
        function()
        print("SUCCESS", name)
    except BaseException:
        pass
attempt("gradebook", lambda: sqlite3.connect("ROOT/gradebook.db").execute("update grade set auto_score = 99"))
attempt("source", lambda: open("ROOT/source/ps/ps.ipynb").read())
attempt("submissions", lambda: os.listdir("ROOT/submitted"))
attempt("marker", lambda: open("ROOT/marker", "w"))
attempt("environment", lambda: os.environ["OF_THE_INSTRUCTOR"])
attempt("network", lambda: socket.create_connection(("127.0.0.1", PORT), 1))
attempt("own notebook", lambda: open("ps.ipynb").read())
"""


class Small:
    """The small course, released, in a working course directory."""

    def __init__(self, folder: Path) -> None:
        source = copy.deepcopy(released())
        cell(source, "double")["source"] = (
            "def double(x):\n    ### BEGIN SOLUTION\n    return 2 * x\n    ### END SOLUTION"
        )
        cell(source, "essay")["source"] = "### BEGIN SOLUTION\nIt is.\n### END SOLUTION"
        write(folder / "course" / "source" / "ps" / "ps.ipynb", source)
        (folder / "course" / "nbgrader_config.py").write_text(CONFIG)
        course = Course(folder / "course")
        self.root = folder / "work"
        self.api: Any = open_nbgrader(course, self.root)
        release.generate(self.api, course, "ps")

    def hand_in(self, student: str, *cells: dict[str, Any]) -> Path:
        notebook = answered()
        notebook["cells"] += list(cells)
        return write(self.root / "submitted" / student / "ps" / "ps.ipynb", notebook)

    def score(self, student: str) -> float:
        with self.api.gradebook as gradebook:
            return float(gradebook.find_submission("ps", student).score)

    def outputs(self, student: str) -> str:
        notebook = json.loads((self.root / "autograded" / student / "ps" / "ps.ipynb").read_text())
        return json.dumps([cell.get("outputs") for cell in notebook["cells"]])

    def nbgrader(self, *words: str) -> subprocess.CompletedProcess[str]:
        environment = {**os.environ, "OF_THE_INSTRUCTOR": "secret", "JUPYTER_PATH": ""}
        return subprocess.run(
            [sys.executable, "-m", "nbgrader", *words],
            cwd=self.root, env=environment, capture_output=True, text=True, timeout=200,
        )  # fmt: skip


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Small]:
    before = os.environ.get("JUPYTER_PATH")
    yield Small(tmp_path_factory.mktemp("small"))
    if before is None:
        os.environ.pop("JUPYTER_PATH", None)
    else:
        os.environ["JUPYTER_PATH"] = before


def test_the_command_grades_in_the_sandbox_and_an_attack_gains_nothing(small: Small) -> None:
    import socket

    with socket.create_server(("127.0.0.1", 0)) as listener:
        attack = ATTACK.replace("ROOT", str(small.root)).replace("PORT", str(listener.getsockname()[1]))
        small.hand_in("mallory", code(attack), code("import os; print(os.getcwd(), os.getuid(), sorted(os.environ))"))
        small.hand_in("grace")
        done = small.nbgrader("autograde", "ps")
    assert done.returncode == 0, done.stderr
    said = small.outputs("mallory")
    assert "/scratch/work 1000" in said, "the kernel does not run in the sandbox"
    assert "SUCCESS" not in said
    assert not (small.root / "marker").exists()
    assert small.score("mallory") == small.score("grace") == 5


def test_formgraders_button_grades_in_the_sandbox(small: Small) -> None:
    """formgrader calls this function in the server's process."""
    small.hand_in("ada", code("import os; print(os.getcwd())"))
    result = small.api.autograde("ps", "ada", force=True)
    assert result["success"], result["log"]
    assert small.score("ada") == 5
    assert "/scratch/work" in small.outputs("ada")


def test_validate_runs_in_the_sandbox_too(small: Small) -> None:
    from nbgrader.validator import Validator

    notebook = answered()
    cell(notebook, "double")["source"] = "import os\ndef double(x):\n    raise ValueError(os.getcwd())"
    path = write(small.root / "mine" / "ps.ipynb", notebook)
    failed = Validator(config=small.api.config).validate(str(path))["failed"]
    assert len(failed) == 2
    assert all(one["raw_error"].endswith(": /scratch/work") for one in failed)


def test_without_bubblewrap_nothing_runs_and_the_instructor_is_told(
    small: Small, monkeypatch: pytest.MonkeyPatch
) -> None:
    marker = small.root / "ran"
    small.hand_in("eve", code(f"open({str(marker)!r}, 'w')"))
    monkeypatch.setenv("PATH", "/nowhere")
    result = small.api.autograde("ps", "eve", force=True)
    assert not result["success"]
    assert "bubblewrap is missing. Install it: `apt install bubblewrap`" in result["log"]
    assert not marker.exists()
    assert not (small.root / "autograded" / "eve" / "ps").exists()


def test_without_the_plugin_nothing_runs(small: Small) -> None:
    spec = small.root / ".jupyter" / "kernels" / "sandboxed-python" / "kernel.json"
    text = spec.read_text()
    marker = small.root / "ran-without-plugin"
    small.hand_in("eve", code(f"open({str(marker)!r}, 'w')"))
    try:
        spec.write_text(text.replace("sandbox-provisioner", "no-such-provisioner"))
        result = small.api.autograde("ps", "eve", force=True)
    finally:
        spec.write_text(text)
    assert not result["success"]
    assert "NoSuchKernel" in result["log"]
    assert not marker.exists()


def test_a_submission_that_was_not_made_canonical_is_not_run(small: Small) -> None:

    small.hand_in("dan")
    (small.root / "release").rename(small.root / "put-away")
    try:
        result = small.api.autograde("ps", "dan", force=True)
    finally:
        (small.root / "put-away").rename(small.root / "release")
    assert not is_prepared("ps", "dan")
    assert not result["success"]
    assert "was not made canonical, so it is not run" in result["log"]


def test_collect_takes_in_a_link_as_a_refused_file_and_the_stub_in_its_place(small: Small) -> None:
    inbound = small.root / "exchange" / "small" / "inbound" / "sam+ps+2026-01-01 10:00:00 UTC+xyz"
    inbound.mkdir(parents=True)
    (inbound / "ps.ipynb").symlink_to(small.root / "source" / "ps" / "ps.ipynb")
    (inbound / "timestamp.txt").write_text("2026-01-01 10:00:00 UTC")
    result = small.api.collect("ps", update=True)
    assert result["success"], result["log"]
    taken = small.root / "submitted" / "sam" / "ps"
    assert not (taken / "ps.ipynb").is_symlink()
    assert "NotImplementedError" in (taken / "ps.ipynb").read_text()
    assert (taken / "timestamp.txt").read_text() == "2026-01-01 10:00:00 UTC"
    assert "sam: It states 2026-01-01 10:00:00 UTC as the time of submission, which counts" in result["log"]
    assert "it is a symbolic link, not a file" in (taken / "ps.ipynb").read_text()
