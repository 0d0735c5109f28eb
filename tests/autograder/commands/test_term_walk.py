"""The instructor's page, followed line by line with a class of thirty, to the last number of every export.

The page's commands are run as they stand. Between them this test does what people do: learners write and hand in, the
instructor types grades into formgrader, downloads a zip file from Canvas, and mends a test that was too strict.
"""

from __future__ import annotations

import csv
import json
import os
import zipfile
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from ps3_course import ROOT
from shell import Shell, blocks

from autograder.course.course import load_config
from autograder.course.gradebook import open_gradebook

pytestmark = [
    pytest.mark.slow,
    pytest.mark.timeout(900),
    pytest.mark.filterwarnings("ignore:Object of type <Submitted"),
]

PAGE = ROOT / "book/instructor.md"
DUE = datetime(2026, 5, 1, 12, 0)
MEAN = "def mean(values):\n    if not values:\n        raise ValueError('empty')\n    return sum(values) / len(values)"
TOTAL = "def running_total(values):\n    return [sum(values[: i + 1]) for i in range(len(values))]"
MEDIAN = "import statistics\n\nmedian = statistics.median"
# Right, but the last digit of 0.1 + 0.2 + 0.3 is another than the reference's.
EXACT = (
    "import math\n\n\ndef running_total(values):\n    return [math.fsum(values[: i + 1]) for i in range(len(values))]"
)
ANSWERS = {
    "all": {"mean": MEAN, "running-total": TOTAL, "median": MEDIAN},  # 2 + 1 + 3, bonus 2: 8
    "exact": {"mean": MEAN, "running-total": EXACT, "median": MEDIAN},  # 5 with the strict test, 8 with the mended one
    "no bonus": {"mean": MEAN, "running-total": TOTAL},  # 6
    "whole": {"mean": MEAN.replace("/", "//"), "running-total": TOTAL, "median": MEDIAN},  # loses test-mean: 6
    "zero": {"mean": MEAN, "running-total": "def running_total(values):\n    return [0, *values]"},  # loses 3: 3
    "nothing": {},  # 0
}
BEFORE, AFTER = "before the regrade", "after the regrade"
# Learner: answers, points by hand and when they are given, then what the exports must say: score, penalty, total.
CLASS: dict[str, tuple[str, float, str, float, float, float]] = {
    "s01": ("all", 4, BEFORE, 12, 0, 12),
    "s02": ("all", 2.5, BEFORE, 10.5, 0, 10.5),
    "s03": ("exact", 4, BEFORE, 12, 0, 12),
    "s04": ("no bonus", 4, BEFORE, 10, 0, 10),
    "s05": ("all", 2, BEFORE, 10, 1, 9),  # two hours late: one day begun
    "s06": ("whole", 4, AFTER, 10, 3, 7),  # two and a half days late: three begun
    "s07": ("exact", 3, BEFORE, 11, 1.1, 9.9),  # a day and a half late, with a day's extension: one begun
    "s08": ("zero", 1, BEFORE, 4, 0, 4),
    "s09": ("nothing", 0, BEFORE, 0, 0, 0),
    "s10": ("whole", 3, BEFORE, 9, 0, 9),
    "s11": ("all", 4, AFTER, 12, 0, 12),
    "s12": ("all", 0, AFTER, 8, 0, 8),
    "s13": ("exact", 1.5, AFTER, 9.5, 0, 9.5),
    "s14": ("no bonus", 3, AFTER, 9, 0, 9),
    "s15": ("zero", 4, AFTER, 7, 0, 7),
    "s16": ("whole", 2, AFTER, 8, 0, 8),
    "s17": ("nothing", 4, AFTER, 4, 0, 4),
    "s18": ("all", 3, AFTER, 11, 0, 11),
    "s19": ("no bonus", 0.5, AFTER, 6.5, 0, 6.5),
    "s20": ("exact", 0, AFTER, 8, 0, 8),
    "s21": ("all", 4, AFTER, 12, 0, 12),
    "s22": ("all", 4, AFTER, 12, 0, 12),
    "s23": ("zero", 2, AFTER, 5, 0, 5),
    "s24": ("whole", 1, AFTER, 7, 0, 7),
    "s25": ("no bonus", 2, AFTER, 8, 0, 8),
    "s26": ("all", 1, AFTER, 9, 0, 9),  # from here on by Canvas
    "s27": ("exact", 2, AFTER, 10, 0, 10),
    "s28": ("zero", 0, AFTER, 3, 0, 3),
    "s29": ("all", 3.5, AFTER, 11.5, 0, 11.5),
    "s30": ("all", 4, BEFORE, 12, 0, 12),  # dropped before grading: in no export
}
LATE = {"s05": timedelta(hours=2), "s06": timedelta(days=2.5), "s07": timedelta(days=1.5)}
CANVAS = [f"s{number}" for number in range(26, 31)]
COLLECTED = [name for name in CLASS if name not in CANVAS]


class Term:
    """The course's folder, and what people do in it between the commands."""

    def __init__(self, root: Path) -> None:
        self.root = root

    def write_roster(self) -> None:
        with (self.root / "roster.csv").open("w", newline="") as file:
            csv.writer(file).writerows(
                [["id", "first_name", "last_name", "lms_user_id"]]
                + [[name, f"First{name[1:]}", f"Last{name[1:]}", f"1{name[1:]}"] for name in CLASS]
            )

    def test_cell(self, old: str, new: str) -> None:
        path = self.root / "source/warmup/warmup.ipynb"
        text = path.read_text(encoding="utf-8")
        assert text.count(f"{old}(running_total([0.1") == 1
        path.write_text(text.replace(f"{old}(running_total([0.1", f"{new}(running_total([0.1"), encoding="utf-8")
        imports = "from autograder.checks import check_close, check_raises, think_of"
        text = path.read_text(encoding="utf-8")
        path.write_text(text.replace(imports, f"{imports}, check_equal"), encoding="utf-8")

    def submission(self, name: str) -> str:
        released = self.root.parent / "trial-course-exchange/trial-course/outbound/warmup/warmup.ipynb"
        if not released.exists():
            released = self.root.parent / "trial-course-exchange/outbound/warmup/warmup.ipynb"
        notebook = json.loads(released.read_text(encoding="utf-8"))
        answers = {**ANSWERS[CLASS[name][0]], "explain": f"Half of the class has 9 or more, says {name}."}
        for cell in notebook["cells"]:
            about = cell["metadata"].get("nbgrader", {})
            if about.get("grade_id") in answers:
                cell["source"] = answers[about["grade_id"]]
        return json.dumps(notebook)

    def hand_in(self) -> None:
        """Through the exchange, as nbgrader's submit leaves it there; the last ones by Canvas."""
        inbound = next((self.root.parent / "trial-course-exchange").rglob("inbound"))
        for name in COLLECTED:
            when = f"{DUE - timedelta(days=1) if name not in LATE else DUE + LATE[name]:%Y-%m-%d %H:%M:%S.%f} UTC"
            folder = inbound / f"{name}+warmup+{when}+aaaa"
            folder.mkdir()
            (folder / "warmup.ipynb").write_text(self.submission(name), encoding="utf-8")
            (folder / "timestamp.txt").write_text(when)
            (folder / "submission_secret.txt").write_text(f"secret of {name}")
        with zipfile.ZipFile(self.root / "submissions.zip", "w") as archive:
            for name in CANVAS:
                number = name[1:]
                archive.writestr(f"last{number}first{number}_1{number}_90{number}_warmup.ipynb", self.submission(name))

    def configure(self, text: str) -> None:
        with (self.root / "nbgrader_config.py").open("a", encoding="utf-8") as file:
            file.write(f"\n{text}")

    def grade_by_hand(self, when: str) -> None:
        """What formgrader stores."""
        with self.gradebook() as gradebook:
            for name, (_, points, moment, *_rest) in CLASS.items():
                if moment == when and name != "s30":
                    grade = gradebook.find_grade("explain", "warmup", "warmup", name)
                    grade.manual_score, grade.needs_manual_grade = points, False
                    gradebook.find_comment("explain", "warmup", "warmup", name).manual_comment = f"Seen, {name}."
            gradebook.db.commit()

    def gradebook(self) -> Any:
        from nbgrader.coursedir import CourseDirectory

        return open_gradebook(CourseDirectory(config=load_config(self.root)))

    def rows(self, name: str) -> list[list[str]]:
        with (self.root / name).open(encoding="utf-8", newline="") as file:
            return list(csv.reader(file))


@pytest.fixture(scope="module")
def said(tmp_path_factory: Any) -> Any:
    """The folder after the whole page, and what each command printed."""
    home = tmp_path_factory.mktemp("home")
    shell, term, said = Shell(home), Term(home / "trial-course"), {}
    for heading, language, text in blocks(PAGE):
        if heading == "Move to a cluster":
            break
        if language == "python":
            term.configure(text)
        if language != "bash":
            continue
        if heading == "The class":
            term.write_roster()
        elif heading == "Release":
            term.test_cell("check_close", "check_equal")  # too strict, and nobody has noticed
        elif heading == "Collect" and "collect" in text:
            term.hand_in()
        elif heading == "Return feedback":
            term.grade_by_hand(BEFORE)
        elif heading == "Mend a test, and regrade" and "release warmup" in text:
            term.test_cell("check_equal", "check_close")
        elif heading == "Mend a test, and regrade":
            term.grade_by_hand(AFTER)
        for line in text.strip().splitlines():
            status = shell.type(line)
            said[f"{heading}: {line}"] = shell.output
            assert status == 0, f"{line}\n{shell.output}"
    return term, said


def number(text: str) -> float | None:
    return float(text) if text else None


def test_every_cell_of_the_canvas_file_is_right(said: Any) -> None:
    term, _ = said
    rows = term.rows("canvas.csv")
    assert rows[0] == ["Student", "ID", "SIS Login ID", "Section", "warmup"]
    assert rows[1] == ["    Points Possible", "", "", "", "10"], "the bonus is no part of it"
    expected = [
        [f"Last{name[1:]}, First{name[1:]}", f"1{name[1:]}", name, "", CLASS[name][5]]
        for name in CLASS
        if name != "s30"
    ]
    assert [[*row[:4], number(row[4])] for row in rows[2:]] == [*expected, ["Late, Noor", "", "s31", "", None]]


def test_every_cell_of_the_moodle_file_is_right(said: Any) -> None:
    term, _ = said
    rows = term.rows("moodle.csv")
    assert rows[0] == ["Username", "ID number", "Email address", "First name", "Last name", "warmup"]
    expected = [
        [name, f"1{name[1:]}", "", f"First{name[1:]}", f"Last{name[1:]}", CLASS[name][5]]
        for name in CLASS
        if name != "s30"
    ]
    assert [[*row[:5], number(row[5])] for row in rows[1:]] == [*expected, ["s31", "", "", "Noor", "Late", None]]


def test_every_cell_of_the_csv_file_is_right(said: Any) -> None:
    term, _ = said
    header, *rows = term.rows("grades.csv")
    assert header[7:] == ["raw_score", "late_submission_penalty", "score", "max_score"]
    found = {row[3]: [*row[:2], *map(float, row[7:])] for row in rows}
    about = ["warmup", "2026-05-01 12:00:00"]
    expected = {name: [*about, *CLASS[name][3:], 10] for name in CLASS if name != "s30"}
    assert found == {**expected, "s31": [*about, 0, 0, 0, 10]}
    times = {row[3]: row[2] for row in rows}
    assert times["s01"] == "2026-04-30 12:00:00"
    assert times["s06"] == "2026-05-04 00:00:00"
    assert times["s26"] == "", "Canvas gives no times"


def test_every_question_of_the_learners_with_the_strict_test_is_right_after_the_regrade(said: Any) -> None:
    term, _ = said
    header, maximum, *rows = term.rows("questions.csv")
    names = ["bonus-median", "explain", "test-mean", "test-mean-empty", "test-running-total"]
    assert header[4:9] == [f"warmup/warmup/{name}" for name in names]
    assert [*map(float, maximum[4:9])] == [2, 4, 2, 1, 3]
    found = {row[0]: [*map(float, row[4:9])] for row in rows if row[0] in ("s03", "s06", "s08", "s27")}
    assert found == {"s03": [2, 4, 2, 1, 3], "s06": [2, 4, 0, 1, 3], "s08": [0, 1, 2, 1, 0], "s27": [2, 2, 2, 1, 3]}


def test_before_the_mended_test_the_right_answer_had_lost_its_points(said: Any) -> None:
    _, printed = said
    summary = printed["Grade: python -m autograder grade warmup --course ."]
    score = {line.split()[0]: line.split()[1] for line in summary.splitlines() if line.startswith("s")}
    assert score["s03"] == "5"
    assert score["s01"] == "8"
    assert "s30" not in score


def test_the_feedback_that_was_released_last_tells_the_final_points_and_the_comment(said: Any) -> None:
    term, printed = said
    released = list((term.root.parent / "trial-course-exchange").rglob("feedback/*.html"))
    assert len(released) == 25, "one for each who handed in through the exchange"
    assert (
        "the feedback of s26, s27, s28, s29 " in printed["Mend a test, and regrade: nbgrader release_feedback warmup"]
    )
    page = (term.root / "feedback/s03/warmup/warmup.html").read_text(encoding="utf-8")
    assert "Score: 12.0 / 10.0" in page
    assert "Seen, s03." in page
    assert not (term.root / "feedback/s30").exists()


def test_graders_statistics_and_similar_pairs_speak_of_the_class_as_it_is(said: Any) -> None:
    _, printed = said
    graders = printed["Look: formgrader: python -m autograder term graders warmup --graders ann ben"]
    assert graders.splitlines()[:2] == ["ann: 15 learners, 15 answers wait", "ben: 15 learners, 14 answers wait"]
    stats = printed["Look back: python -m autograder term stats warmup"]
    line = next(line for line in stats.splitlines() if line.startswith("test-mean "))
    assert line.split()[:5] == ["test-mean", "2", "29", "1.59", "2"]  # 46 points: six of 29 have none
    assert "4 x Whole-number division in place of division" in line


def test_the_gradebook_of_the_course_was_opened_only_by_its_owner(said: Any) -> None:
    term, _ = said
    assert os.stat(term.root).st_mode & 0o777 == 0o700
