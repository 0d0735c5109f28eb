"""Questions in a cell: what they hold, what paper gets, and how the browser judges answers (answers.test.mjs)."""

import pytest
from node_tools import run_node_tests
from test_quiz_files import GOOD

from interactives import ClosingQuestions, OpeningQuestions, Predict, Quiz, questions, quiz

WIDGET = "application/vnd.jupyter.widget-view+json"


@pytest.fixture
def lesson(monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.setattr(questions, "load", lambda name: quiz.read(GOOD, f"{name}.yml"))
    return "01_try"


def test_answers_are_read_and_judged_in_the_browser_as_promised() -> None:
    assert "fail 0" in run_node_tests("answers.test.mjs")


def test_a_cell_shows_a_widget_in_jupyterlab_and_a_place_for_it_on_the_page(lesson: str) -> None:
    for asked, name in ((Quiz, "quiz"), (OpeningQuestions, "opening"), (ClosingQuestions, "closing")):
        bundle, _ = asked(lesson)._repr_mimebundle_()
        assert WIDGET in bundle
        assert f'data-interactive="{name}"' in bundle["text/html"]
        assert bundle["text/plain"] == f'{asked.__name__}("01_try")'


def test_paper_gets_the_questions_without_a_key(lesson: str) -> None:
    paper = Quiz(lesson).paper()
    assert "At 16 bits and <math>" in paper
    assert "________ tokens/s" in paper
    assert "208.6" not in paper
    assert "<li>48 ms</li><li>it&#x27;s &quot;&lt;b&gt;&quot; &amp; 4.794 ms</li>" in paper  # by the alphabet
    assert "<li>one</li><li>three</li><li>two</li>" in paper


def test_opening_questions_do_not_carry_the_quiz(lesson: str) -> None:
    assert set(OpeningQuestions(lesson).data) == {"lesson", "title", "pass", "xp", "opening"}
    assert "opening" not in Quiz(lesson).data


def test_a_prediction_holds_its_answer_and_four_digits_of_it() -> None:
    asked = Predict("A step, in *ms*?", answer=4.79418, unit="ms", tolerance=0.02, explain="Bytes.", key="01-step-ms")
    assert asked.data == {
        "key": "01-step-ms",
        "variant": {
            "prompt": ["A step, in ", ["em", "ms"], "?"],
            "answer": 4.79418,
            "shown": "4.794",
            "unit": "ms",
            "tolerance": 0.02,
            "mistakes": [],
            "explain": ["Bytes."],
        },
    }
    assert str(asked) == "Predict(key='01-step-ms')"


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ({"answer": float("nan")}, "the answer must be a finite number, got nan"),
        ({"tolerance": 5}, "tolerance is relative, 0 to 1, got 5"),
        ({"key": " "}, "a prediction needs a key"),
    ],
)
def test_a_faulty_prediction_is_refused(change: dict, told: str) -> None:
    with pytest.raises(ValueError, match=told):
        Predict("?", **{"answer": 1.0, "key": "k", **change})
