"""A small course whose tests use every way to call a learner's code, and submissions to it, honest and otherwise."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

from nbformat import write
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook

from autograder.batch.scores import Result, autograde, read
from autograder.course.course import Course, open_nbgrader
from autograder.proof.release import generate

ROOT = Path(__file__).resolve().parents[3]
TINY = "tiny"
CANARY = "CANARY-7f3a"  # stands in hidden tests only

SETUP = """import numpy as np

from autograder.checks import arguments_in_place, check_equal, check_raises, random_inputs"""

ANSWERS = {
    "double": "def double(x):\n    return 2 * x",
    "stack": """class Stack:
    def __init__(self, most):
        self.items, self.most = [], most

    def push(self, item):
        if len(self.items) == self.most:
            raise MemoryError("full")
        self.items.append(item)

    def pop(self):
        if not self.items:
            raise KeyError("empty")
        return self.items.pop()

    @property
    def free(self):
        return self.most - len(self.items)""",
    "sample": """def sample(model, rng, n):
    tokens = [0]
    for _ in range(n):
        probs = np.asarray(model(tokens))
        tokens.append(int((np.cumsum(probs) <= rng.random()).sum()))
    return tokens[1:]""",
    "extend": "def extend(cache, item):\n    return [*cache, item]",
    "norm": "def norm(x):\n    return x / (x * x).sum() ** 0.5",
    "share": "def share(n):\n    return n / 4",
}

TESTS = {
    "test-double": f"""check_equal(double(4), 8, given=4, what="double")
### BEGIN HIDDEN TESTS
secret = "{CANARY}"
check_equal(double(secret), secret + secret, given=secret, what="double")
rng = random_inputs(1)
for x in rng.integers(1, 1000, 5).tolist():
    check_equal(double(x), x + x, given=x, what="double")
assert double(1.5) == 3.0 and secret  # {CANARY}
### END HIDDEN TESTS""",
    "test-stack": """stack = Stack(2)
stack.push("a")
assert stack.free == 1
stack.push("b")
check_raises(MemoryError, stack.push, "c")
assert stack.pop() == "b" and stack.free == 1
### BEGIN HIDDEN TESTS
check_raises(KeyError, Stack(1).pop)
labelled = Stack(1)
labelled.push("{CANARY}")
### END HIDDEN TESTS""".replace("{CANARY}", CANARY),
    "test-sample": """calls = []


def model(tokens):
    calls.append(list(tokens))
    return np.array([0.0, 1.0, 0.0]) if len(tokens) % 2 else np.array([0.5, 0.0, 0.5])


rng = np.random.default_rng(3)
right = [int(2 * (u >= 0.5)) if i % 2 else 1 for i, u in enumerate(np.random.default_rng(3).random(5))]
check_equal(sample(model, rng, 5), right, what="sample")
check_equal(len(calls), 5, what="calls of the model")""",
    "test-extend": """cache = [1, 2]
with arguments_in_place():
    longer = extend(cache, 3)
assert longer == [1, 2, 3], "extend([1, 2], 3) should be [1, 2, 3]"
assert cache == [1, 2], "the old cache was changed"
### BEGIN HIDDEN TESTS
longer = extend(["{CANARY}"], 7)
assert len(longer) == 2, f"extend: {longer} should hold two"
### END HIDDEN TESTS""".replace("{CANARY}", CANARY),
    "test-norm": """np.testing.assert_allclose(norm(np.array([3.0, 4.0])), [0.6, 0.8], err_msg="norm([3, 4])")""",
    "test-share": "2 * share(3)",
}
POINTS = {"test-double": 3, "test-stack": 2, "test-sample": 2, "test-extend": 2, "test-norm": 2, "test-share": 2}
FULL = dict(POINTS, **{"test-share": 1.5})


def source_notebook() -> Any:
    def about(name: str, **more: Any) -> dict[str, Any]:
        base = {"grade_id": name, "grade": False, "solution": False, "locked": False, "task": False}
        return {"nbgrader": {**base, "schema_version": 3, **more}}

    cells = [new_code_cell(SETUP, metadata=about("setup", locked=True))]
    for name, answer in ANSWERS.items():
        head, _, body = answer.partition("\n")
        marked = f"{head}\n    ### BEGIN SOLUTION\n{body}\n    ### END SOLUTION"
        cells.append(new_code_cell(marked, metadata=about(name, solution=True)))
        test = f"test-{name}"
        cells.append(new_code_cell(TESTS[test], metadata=about(test, grade=True, locked=True, points=POINTS[test])))
    text = "### BEGIN SOLUTION\nIn words.\n### END SOLUTION"
    cells.append(new_markdown_cell(text, metadata=about("words", grade=True, solution=True, points=2)))
    return new_notebook(cells=cells)


def make_course(root: Path) -> Course:
    """The course's folder: the repository's configuration and one assignment."""
    (root / "source" / TINY).mkdir(parents=True)
    text = (ROOT / "exercises/nbgrader_config.py").read_text(encoding="utf-8")
    (root / "nbgrader_config.py").write_text(text + "c.Execute.timeout = 6\nc.SandboxedExecute.budget = 120\n")
    write(source_notebook(), root / "source" / TINY / f"{TINY}.ipynb")
    return Course(root)


class Desk:
    """A working folder where submissions are handed in and graded by nbgrader."""

    def __init__(self, folder: Path) -> None:
        self.course = make_course(folder / "course")
        self.work = folder / "work"
        self.api = open_nbgrader(self.course, self.work)
        self.released = generate(self.api, self.course, TINY)

    def hand_in(self, student: str, answers: dict[str, str], edit: Any = None) -> None:
        """The released notebook with these answers; `edit(cells by name, notebook)` changes it further."""
        folder = self.work / "submitted" / student / TINY
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        notebook = json.loads((self.released / f"{TINY}.ipynb").read_text(encoding="utf-8"))
        named = {cell["metadata"].get("nbgrader", {}).get("grade_id"): cell for cell in notebook["cells"]}
        for name, text in answers.items():
            named[name]["source"] = text
        if edit is not None:
            edit(named, notebook)
        (folder / f"{TINY}.ipynb").write_text(json.dumps(notebook), encoding="utf-8")

    def grade(self, student: str) -> Result:
        return autograde(self.api, TINY, student)

    def scores(self, result: Result) -> dict[str, float | None]:
        return {cell.name: cell.score for cell in result.cells if cell.name != "words"}

    def reasons(self, result: Result) -> dict[str, str]:
        return {cell.name: cell.reason for cell in result.cells if cell.reason}

    def read(self, student: str) -> Result:
        return read(self.api, TINY, student)

    def graded_file(self, student: str) -> Path:
        return self.work / "autograded" / student / TINY / f"{TINY}.ipynb"

    def graded(self, student: str) -> Any:
        return json.loads(self.graded_file(student).read_text(encoding="utf-8"))

    def feedback(self, student: str) -> str:
        answer = self.api.generate_feedback(TINY, student, force=True)
        assert answer["success"], answer
        return (self.work / "feedback" / student / TINY / f"{TINY}.html").read_text(encoding="utf-8")
