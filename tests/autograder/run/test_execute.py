"""Submissions to a small course, honest and dishonest, on the path of `nbgrader autograde`, in the sandbox."""

from __future__ import annotations

import json
import math
import re
from pathlib import Path
from typing import Any

import pytest
from tiny_course import ANSWERS, CANARY, FULL, POINTS, SETUP, TESTS, Desk
from traitlets.config import Config

from autograder.batch.scores import Result
from autograder.run.execute import _credit
from autograder.run.learner import Learner
from autograder.run.outputs import Outputs

pytestmark = [
    pytest.mark.slow,
    pytest.mark.timeout(600),
    pytest.mark.filterwarnings("ignore:Object of type"),
]

# Right in every function, and noisy in every way.
NOISY = {
    **ANSWERS,
    "double": """import sys, warnings
for _ in range(20):
    print("x" * 10**6)
def double(x):
    print("doubling", x)
    print("progress", file=sys.stderr)
    warnings.warn("this is slow")
    return 2 * x""",
    "share": ANSWERS["share"] + "\nraise RuntimeError('after the definition')",
}

# Each answer tries another trick.
TRICKS = {
    "double": """import builtins, os, sys
import numpy as np
import autograder.checks
check_equal = check_raises = autograder.checks.check_equal = lambda *a, **k: None
np.testing.assert_allclose = lambda *a, **k: None
class Always:
    def __eq__(self, other):
        return True
def double(x):
    return Always()""",
    "stack": """class Stack:
    free = 1
    def __init__(self, most): pass
    def push(self, item): pass
    def pop(self): return 'b'""",
    "sample": """import gc, re
def sample(model, rng, n):
    texts = [repr(list(globals().get('In', [])))]
    frame = sys._getframe()
    while frame:
        texts.append(repr(frame.f_locals))
        frame = frame.f_back
    texts += [repr(o) for o in gc.get_objects() if isinstance(o, (dict, list, tuple)) and len(o) < 200]
    for root in ('/tmp', '/run', '/home', '/work', os.getcwd(), os.path.dirname(autograder.checks.__file__)):
        for here, _, names in os.walk(root):
            if 'site-packages' in here or 'kernel' in here:
                continue
            for name in names[:50]:
                try:
                    texts.append(open(os.path.join(here, name), errors='replace').read(10**6))
                except OSError:
                    pass
    print('found', set(re.findall('CANARY-[0-9a-f]{4}', ' '.join(texts))))
    return [1] * n""",
    "extend": "def extend(cache, item):\n    cache.append(item)\n    return cache",
    "norm": """get_ipython().input_transformers_cleanup.append(lambda lines: ['pass\\n'])
def norm(x):
    return np.array([float('nan')] * len(x))""",
    "share": ANSWERS["share"],
}

# Each answer ends, or tries to outlive, its kernel or its test.
DEADLY = {
    "double": "import os\nos._exit(1)",
    "stack": ANSWERS["stack"],
    "sample": """import time
def sample(model, rng, n):
    while True:
        try:
            time.sleep(60)
        except BaseException:
            pass""",
    "extend": ANSWERS["extend"],
    "norm": "import os\ndef norm(x):\n    os.kill(os.getpid(), 9)",
    "share": "def share(n):\n    return 99",
}

# Wrong in honest ways.
WRONG = {
    "double": "def double(x):\n    return x + 2.0",
    "stack": ANSWERS["stack"].replace('raise MemoryError("full")', "pass"),
    "sample": ANSWERS["sample"].replace("<=", ">"),
    "extend": "def extend(cache, item):\n    return cache",
    "norm": "def norm(x):\n    return x / (x * x).sum()",
    "share": "def share(n):\n    return 'most'",
}

# The kernel itself is broken.
LYING = {
    **ANSWERS,
    "stack": """import base64, builtins, json, IPython
json.dumps = lambda *a, **k: '{"value": true}'
json.loads = lambda *a, **k: {}
base64.b64encode = lambda data: b'bm9uc2Vuc2U='
builtins.repr = lambda value: 'True'
get_ipython().display_formatter.format = lambda value: ({'text/plain': 'x' * 10}, {})
class Stack: pass""",
}


# Right for the inputs that are shown; gives hidden ones away wherever it can.
ECHO = {
    **ANSWERS,
    "double": "def double(x):\n    print(x)\n    return 8 if x == 4 else x",
    "stack": ANSWERS["stack"].replace(
        "        self.items.append",
        "        if len(item) > 1:\n            raise ValueError(item)\n        self.items.append",
    ),
    "extend": "def extend(cache, item):\n    return [*cache, item][: 3 if item == 3 else 1]",
}


def skip_and_empty(named: dict[str, Any], notebook: Any) -> None:
    """What a learner may do to test cells: tags, another text, an output that is there already."""
    for name in POINTS:
        named[name]["metadata"]["tags"] = ["skip-execution"]
        named[name]["source"] = "pass"
        named[name]["outputs"] = [{"output_type": "execute_result", "data": {"text/plain": "2"}, "metadata": {},
                                   "execution_count": 1}]  # fmt: skip


def odd_cells(named: dict[str, Any], notebook: Any) -> None:
    """Cells of the learner's own that ask for input, hold a null byte, or say nothing."""
    for position, text in enumerate(["input('name?')", "x = '\0'", "", "1 / 0"]):
        cell = {"cell_type": "code", "metadata": {}, "source": text, "outputs": [], "execution_count": None}
        notebook["cells"].insert(1 + position, {**cell, "id": f"odd-{position}"})


SUBMISSIONS: dict[str, tuple[dict[str, str], Any]] = {
    "noisy": (NOISY, odd_cells),
    "tricks": (TRICKS, skip_and_empty),
    "deadly": (DEADLY, None),
    "wrong": (WRONG, None),
    "lying": (LYING, None),
    "echo": (ECHO, None),
}


@pytest.fixture(scope="module")
def desk(tmp_path_factory: Any, forked_kernels: None) -> Desk:
    return Desk(tmp_path_factory.mktemp("tiny"))


@pytest.fixture(scope="module")
def grade(desk: Desk) -> Any:
    done: dict[str, Result] = {}

    def get(name: str) -> Result:
        if name not in done:
            desk.hand_in(name, *SUBMISSIONS[name])
            done[name] = desk.grade(name)
        assert done[name].problem == ""
        return done[name]

    return get


def test_a_right_but_noisy_submission_gets_every_point(desk: Desk, grade: Any) -> None:
    assert desk.scores(grade("noisy")) == FULL


def test_output_is_cut_by_bytes_with_a_note(desk: Desk, grade: Any) -> None:
    grade("noisy")
    assert desk.graded_file("noisy").stat().st_size < 300_000
    assert "bytes of output were cut here" in desk.graded_file("noisy").read_text()


def test_input_and_malformed_cells_end_with_a_named_error(desk: Desk, grade: Any) -> None:
    grade("noisy")
    errors = [
        output["ename"] for cell in desk.graded("noisy")["cells"] for output in cell.get("outputs", [])
        if output["output_type"] == "error"
    ]  # fmt: skip
    assert errors[0] == "StdinNotImplementedError"
    assert "ZeroDivisionError" in errors
    assert errors[-1] == "RuntimeError"


def test_the_seed_of_the_random_inputs_is_recorded_and_used_again(desk: Desk, grade: Any) -> None:
    first = grade("noisy")
    record = desk.graded("noisy")["metadata"]["autograder"]
    again = desk.grade("noisy")
    assert desk.graded("noisy")["metadata"]["autograder"]["seed"] == record["seed"]
    assert desk.scores(again) == desk.scores(first)
    assert {cell["name"]: cell["questions"] for cell in record["cells"]}["test-double"] == 9  # names, 8 calls


def test_what_a_learner_prints_is_shown_for_the_visible_part_of_a_test(desk: Desk, grade: Any) -> None:
    grade("noisy")
    cell = next(c for c in desk.graded("noisy")["cells"] if "test-double" in json.dumps(c["metadata"]))
    printed = "".join("".join(output.get("text", "")) for output in cell["outputs"])
    assert printed.startswith("doubling 4")
    assert printed.count("doubling") == 1


def test_no_trick_earns_a_point(desk: Desk, grade: Any) -> None:
    assert desk.scores(grade("tricks")) == dict.fromkeys(POINTS, 0)


def test_each_trick_is_answered_in_words(desk: Desk, grade: Any) -> None:
    reasons = desk.reasons(grade("tricks"))
    assert "double: expected integers, got a value of type Always" in reasons["test-double"] or (
        "expected numbers, got a value of type Always" in reasons["test-double"]
    )
    assert "MemoryError was not raised" in reasons["test-stack"] or "does not hold" in reasons["test-stack"]
    assert "AssertionError: the old cache was changed" in reasons["test-extend"]
    assert "Mismatched elements" in reasons["test-norm"] or "nan" in reasons["test-norm"]


def test_a_canary_in_a_hidden_test_is_nowhere_a_learner_can_see(desk: Desk, grade: Any) -> None:
    for name in ("tricks", "wrong", "noisy"):
        grade(name)
        seen = [cell.get("outputs", []) for cell in desk.graded(name)["cells"]]
        assert CANARY not in json.dumps(seen)
        assert CANARY not in desk.feedback(name)
    outputs = json.dumps([cell.get("outputs", []) for cell in desk.graded("tricks")["cells"]])
    assert "found set()" in outputs


def test_hidden_values_that_a_function_returns_or_raises_are_not_in_its_feedback(desk: Desk, grade: Any) -> None:
    said = desk.reasons(grade("echo"))
    assert all(CANARY in said[name] for name in ("test-double", "test-stack", "test-extend"))  # the instructor sees all
    page = desk.feedback("echo")
    assert CANARY not in page
    text = re.sub(r"\s+", " ", re.sub(r"<[^>]+>", " ", page))
    assert "double: the text differs Input a text of 11 characters (hidden) Your code gave a text of 11" in text
    assert "push raised ValueError (line" in text
    assert "extend: ... should hold two" in text


def test_after_a_death_the_other_cells_are_graded(desk: Desk, grade: Any) -> None:
    result = grade("deadly")
    assert desk.scores(result) == {**dict.fromkeys(POINTS, 0), "test-stack": 2, "test-extend": 2}
    reasons = desk.reasons(result)
    assert "name 'double' is not defined (cell double raised KernelDied" in reasons["test-double"]
    assert "NoAnswer: sample: the test's 6 seconds were over" in reasons["test-sample"]
    assert "NoAnswer: norm: the kernel was lost: it was killed" in reasons["test-norm"]
    assert desk.graded("deadly")["metadata"]["autograder"]["restarts"] == ["test-double", "extend", "share"]


def test_more_partial_credit_than_there_is_is_an_error(desk: Desk, grade: Any) -> None:
    reason = desk.reasons(grade("deadly"))["test-share"]
    assert reason == "PartialCreditError: the test ended in 198.0, which is no number of points from 0 to 2"


def test_a_kernel_that_lies_loses_its_own_points_only(desk: Desk, grade: Any) -> None:
    scores = desk.scores(grade("lying"))
    assert scores["test-double"] == 3
    assert scores["test-stack"] == 0


@pytest.mark.parametrize("name", list(POINTS))
def test_a_test_cell_says_the_same_in_a_notebook_and_across_the_wire(name: str, desk: Desk, grade: Any) -> None:
    wrong = desk.reasons(grade("wrong"))
    *statements, last = TESTS[name].split("\n")
    for answers in (ANSWERS, WRONG):
        space: dict[str, Any] = {"__name__": "__main__"}
        exec(SETUP, space)
        exec(answers[name.removeprefix("test-")], space)
        said = None
        try:
            exec("\n".join(statements), space)
            exec(last, space)
        except Exception as error:
            said = str(error)
        if answers is ANSWERS or name == "test-share":  # in a notebook, a wrong number of points is no error
            assert said is None
        else:
            assert said
            assert said in wrong[name]


@pytest.mark.parametrize("value", [math.nan, -1.0, math.inf, 2.5, -1e-9])
def test_a_number_that_is_no_partial_credit_is_named(value: float) -> None:
    error, outputs = _credit({"number": repr(value)}, 2)
    assert error is not None
    assert repr(value) in error["evalue"]
    assert outputs == []


@pytest.mark.parametrize("value", [0.0, 0.5, 2.0])
def test_a_number_of_points_is_written_as_nbgrader_reads_it(value: float) -> None:
    error, outputs = _credit({"number": repr(value)}, 2)
    assert error is None
    assert outputs[0].data["text/plain"] == repr(value)


def test_an_endless_print_is_stopped_and_the_graders_memory_stays_bounded(tmp_path: Path) -> None:
    resource = pytest.importorskip("resource")
    learner = Learner("python3", tmp_path, ["--log-level=40"], Config())
    learner.start()
    try:
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        outputs = Outputs()
        answer = learner.run("while True:\n    print('x' * 100_000)", 3, outputs)
        assert answer.kind == "timeout"
        assert "did not end within 3 seconds" in answer.words
        assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 300_000  # KiB
        assert sum(len(output.get("text", "")) for output in outputs.finish()) < 65_000
    finally:
        learner.stop()


def test_malformed_outputs_are_dropped_and_the_rest_is_bounded() -> None:
    outputs = Outputs(text=100, rich=1000)
    for content in ({}, {"text": 3}, {"text": "a\ud800b", "name": 7}, {"text": "y" * 1000, "name": "stderr"}):
        outputs.take("stream", content)
    outputs.take("display_data", {"data": {"image/png": "x" * 2000, "text/plain": 5, "application/javascript": "x"}})
    outputs.take("display_data", {"data": []})
    outputs.take("error", {"ename": ["x"], "evalue": None, "traceback": [1, 2]})
    kept = outputs.finish()
    assert [output.output_type for output in kept] == ["stream", "stream", "error", "stream"]
    assert kept[0].text == "a?b"
    assert len(kept[1].text) < 100
    assert (kept[2].ename, kept[2].evalue) == ("Error", "")
    assert "bytes of output were cut here" in kept[3].text


def test_a_progress_bar_leaves_its_last_state() -> None:
    outputs = Outputs()
    for percent in range(0, 101, 10):
        outputs.take("stream", {"name": "stderr", "text": f"\r{percent} %"})
    assert outputs.finish()[0].text == "100 %"


def test_a_line_of_megabytes_costs_no_more_than_many_short_ones() -> None:
    line = "x" * 4_000_000  # hours where each letter is compared with those before it
    outputs = Outputs(text=10**7)
    outputs.take("stream", {"name": "stdout", "text": f"50 %\r100 %\r\n{line}"})
    assert outputs.finish()[0].text == f"100 %\r\n{line}"
