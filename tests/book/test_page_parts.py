"""The parts that pages are made of, without a build: policy, practice files, problem sets, reference, comparison."""

import json
import subprocess
from pathlib import Path

import pytest
from site_tools import BOOK, ROOT

from interactives.npm import find_tool

HERE = Path(__file__).parent


@pytest.fixture(autouse=True)
def _extensions(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(BOOK / "_ext")
    monkeypatch.syspath_prepend(BOOK)


def test_outputs_are_compared_as_a_reader_sees_them() -> None:
    command = [find_tool("node"), "--test", str(HERE / "compare.test.mjs")]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout[-3000:]


def test_a_policy_names_the_inline_scripts_of_its_page_and_no_data() -> None:
    from page_policy import policy

    html = '<script>go()</script><script src="a.js"></script><script type="application/json">{"a": 1}</script>'
    # printf 'go()' | openssl dgst -sha256 -binary | base64
    assert "script-src 'self' 'sha256-5KYv+PUboo5h+0+YAtGRPbwv5d/QxzHslP4YGnUaxRw='; " in policy(html)
    assert "http" not in policy(html)


def test_another_host_is_allowed_only_where_the_discussion_lives_there() -> None:
    from page_policy import GISCUS, finish

    page = '<head><meta charset="utf-8" /></head><script src="../searchindex.js"></script>'
    assert "giscus" not in finish(page, "a.html")
    allowed = finish(page, "a.html", GISCUS)
    assert "script-src 'self' https://giscus.app;" in allowed
    assert "frame-src https://giscus.app" in allowed


def test_the_search_index_stays_on_the_search_page_and_handlers_go() -> None:
    from page_policy import finish

    page = '<meta charset="utf-8" />\n<script src="searchindex.js"></script><button onclick="window.print()">x</button>'
    assert "searchindex" not in finish(page, "index.html")
    assert "searchindex" in finish(page, "search.html")
    assert "onclick" not in finish(page, "index.html")


@pytest.mark.parametrize(
    ("solution", "told"),
    [
        ("print(1 / int(input()))", "case 'zero': the solution ends with ZeroDivisionError"),
        ("print(7)", "case 'a word': the solution accepts it and prints '7\\\\n'"),
    ],
)
def test_a_solution_that_fails_its_own_cases_stops_the_build(tmp_path: Path, solution: str, told: str) -> None:
    from practice import ProgramError, read_exercise

    (tmp_path / "exercise.yml").write_text(
        json.dumps(
            {
                **{"id": "x", "title": "X", "xp": 1, "samples": [{"name": "zero", "input": "0"}]},
                "refused": [{"name": "a word", "input": "word"}],
            }
        )
    )
    (tmp_path / "solution.py").write_text(solution)
    (tmp_path / "starter.py").write_text("")
    with pytest.raises(ProgramError, match=told):
        read_exercise(tmp_path)


def test_the_first_exercise_has_the_outputs_of_the_contract() -> None:
    from practice import read_exercise

    exercise = read_exercise(ROOT / "exercises" / "practice" / "01_groupwise_int8")
    assert exercise["samples"][0]["expected"] == "group 1: scale 0.06299 q 2 -8 5 1 127\nmean error: 0.00639\n"
    assert {case["name"] for case in exercise["cases"] if case.get("refused")} >= {"No weights", "A third line"}


def test_the_table_of_problem_sets_counts_points_as_nbgrader_does() -> None:
    from problem_sets import read_all

    found = {one.name: one for one in read_all(ROOT / "exercises" / "source")}
    assert list(found) == ["ps1_prefill_decode", "ps2_batching", "ps3_quantization", "ps4_speculative", "ps5_sizing"]
    assert all(one.points > 0 for one in found.values())
    assert found["ps5_sizing"].by_hand > 0  # a recommendation is graded by hand
    with_bonus = {name: (one.points, one.bonus) for name, one in found.items() if one.bonus}
    assert with_bonus == {"ps3_quantization": (60, 10), "ps5_sizing": (60, 10)}  # as their introductions say


def test_the_reference_shows_signatures_as_they_are_written() -> None:
    import ast

    from api_pages import find_module, modules_of, signature

    tree = ast.parse(find_module("reference_impl.bounds.arithmetic").read_text("utf-8"))
    functions = {node.name: signature(node) for node in tree.body if isinstance(node, ast.FunctionDef)}
    assert functions["prefill_flops"] == "prefill_flops(n_params: float, n_tokens: int) → float"
    assert {"reference_impl.quantization", "reference_impl.quantization.groupwise"} <= set(
        modules_of("reference_impl.quantization")
    )


def test_site_and_figures_use_the_same_scheduler_of_reviews() -> None:
    book = json.loads((BOOK / "package.json").read_text())["dependencies"]
    figures = json.loads((ROOT / "interactives" / "package.json").read_text())["devDependencies"]
    assert book["ts-fsrs"] == figures["ts-fsrs"]
    assert book["esbuild"] == figures["esbuild"]
