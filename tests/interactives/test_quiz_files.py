"""Quiz files: what they hold is computed, what is wrong with one is said with file, question and field."""

import re
from pathlib import Path

import pytest

from interactives import quiz, richtext
from interactives.quiz import QuizError, read

GOOD = """
lesson: 01_try
pass: 2
xp: 50
let: {params: 'MODELS["llama-3-8b"].n_params', card: 'GPUS["h100-sxm"]'}
opening:
  - id: guess
    kind: numeric
    prompt: Tokens per second?
    answer: decode_tokens_per_second(2 * params, card.bandwidth)
    unit: tokens/s
    explain: Bytes a second over bytes.
questions:
  - id: bound
    kind: numeric
    vary: {bits: [16, 8, 4]}
    prompt: "At {bits} bits and $\\\\alpha^{k}$, {card.bandwidth / 1e12:.2f} TB/s?"
    answer: decode_tokens_per_second(weight_bytes(params, bits), card.bandwidth)
    unit: tokens/s
    tolerance: 0.02
    mistakes:
      - {value: answer / 8, name: bits counted as bytes, explain: "{x:.0f} is an eighth."}
    explain: "{answer:.1f} tokens per second."
  - id: marks
    kind: choice
    prompt: Which one?
    options:
      - {text: "it's \\"<b>\\" & {x:.3f} ms", value: 16.06e9 / 3.35e12 * 1e3, correct: true, explain: Yes.}
      - {text: "48 ms", mistake: ten times, explain: A zero too many.}
    explain: Short.
  - id: order
    kind: ordering
    prompt: First to last
    items: [one, two, three]
    explain: Counting.
"""


def changed(old: str, new: str) -> str:
    assert old in GOOD
    return GOOD.replace(old, new)


def test_keys_and_numbers_in_texts_are_computed_for_each_variant() -> None:
    bound = read(GOOD, "01_try.yml").questions[0]
    assert [variant["shown"] for variant in bound.variants] == ["208.6", "417.2", "834.3"]
    assert [richtext.plain(variant["prompt"]) for variant in bound.variants] == [
        f"At {bits} bits and α^k, 3.35 TB/s?" for bits in (16, 8, 4)
    ]
    assert [round(variant["mistakes"][0]["value"], 1) for variant in bound.variants] == [26.1, 52.1, 104.3]
    assert bound.variants[0]["mistakes"][0]["explain"] == ["26 is an eighth."]
    assert bound.variants[0]["explain"] == ["208.6 tokens per second."]


def test_a_text_with_quotes_angle_brackets_and_ampersands_is_kept_as_it_is() -> None:
    text = read(GOOD, "01_try.yml").questions[1].variants[0]["options"][0]["text"]
    assert richtext.plain(text) == 'it\'s "<b>" & 4.794 ms'
    assert richtext.to_html(text) == "it&#x27;s &quot;&lt;b&gt;&quot; &amp; 4.794 ms"


def test_maths_becomes_mathml() -> None:
    nodes = richtext.parse(r"$\frac{1 - \alpha^{k+1}}{1 - \alpha}$ tokens, `x < y` and *all* of $h_{kv}$")
    assert richtext.to_html(nodes) == (
        "<math><mfrac><mrow><mn>1</mn><mo>−</mo><msup><mi>α</mi><mrow><mi>k</mi><mo>+</mo><mn>1</mn></mrow></msup></mrow>"
        "<mrow><mn>1</mn><mo>−</mo><mi>α</mi></mrow></mfrac></math> tokens, <code>x &lt; y</code> and <em>all</em> of "
        "<math><msub><mi>h</mi><mrow><mi>k</mi><mi>v</mi></mrow></msub></math>"
    )


@pytest.mark.parametrize(
    ("text", "told"),
    [
        (changed("pass: 2", "pass: 9"), "01_try.yml: pass is 9 of 3 questions"),
        (changed("lesson: 01_try", "lesson: 02_other"), "`lesson` is '02_other', which is not the file's name"),
        (changed("id: order", "id: bound"), "two questions are called 'bound'"),
        (changed("unit: tokens/s\n    tolerance", "units: tokens/s\n    tolerance"), "question bound: unknown 'units'"),
        (
            changed("weight_bytes(params, bits)", "weights(params)"),
            "question bound (bits = 16), answer: 'decode_tokens",
        ),
        (changed("weight_bytes(params, bits)", "weights(params)"), "NameError: name 'weights' is not defined"),
        (changed("answer / 8", "answer * 1.01"), "lies within the tolerance of the right answer"),
        (changed("correct: true, ", "mistake: none, "), "question marks: exactly one option is `correct: true`"),
        (changed("mistake: ten times, ", ""), "option 2: a wrong option names its `mistake`"),
        (changed('"48 ms"', '"it\'s \\"<b>\\" & 4.794 ms"'), "two options read"),
        (changed("explain: Short.", "explain: Option B is right."), "never name them by letter"),
        (changed("items: [one, two, three]", "items: [one, two, two]"), "3 to 8 different items"),
        (changed("{answer:.1f} tokens", "{speed:.1f} tokens"), "explain: NameError"),
        (changed("$\\\\alpha^{k}$", "$\\\\tau$"), "\\tau is not among the commands that quizzes know"),
        ("lesson: [", "01_try.yml: not YAML"),
    ],
)
def test_a_faulty_file_is_refused_with_file_question_and_field(text: str, told: str) -> None:
    with pytest.raises(QuizError, match=re.escape(told)):
        read(text, "01_try.yml")


@pytest.mark.parametrize("lesson", quiz.lessons())
def test_each_lesson_has_seven_questions_of_three_kinds_and_three_that_open_it(lesson: str) -> None:
    found = quiz.load(lesson)
    kinds = [question.kind for question in found.questions]
    assert (len(kinds), found.pass_mark, found.xp, len(found.opening)) == (7, 5, 50, 3)
    assert kinds.count("numeric") >= 3
    assert kinds.count("ordering") == 1
    numeric = [question for question in found.questions if question.kind == "numeric"]
    assert all(question.variants[0]["tolerance"] > 0 for question in numeric)
    assert any(len(question.variants) > 1 for question in numeric)  # a retry has new numbers


def test_a_quiz_that_does_not_exist_is_named() -> None:
    with pytest.raises(QuizError, match="there is no quiz '99_nothing'"):
        quiz.load("99_nothing")


def test_every_quiz_belongs_to_a_lesson() -> None:
    notebooks = {path.stem for path in (Path(__file__).parents[2] / "notebooks").glob("*.ipynb")}
    assert set(quiz.lessons()) <= notebooks
