"""The parts that pages are made of, without a build: policy, practice files, problem sets, reference, comparison."""

import json
import os
import re
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


@pytest.mark.parametrize("name", ["interpreter_snapshot", "lab", "search", "verdict"])
def test_the_scripts_of_the_site_do_what_their_tests_say(name: str, tmp_path: Path) -> None:
    """They are bundled first, as for the site, since they import JSON, styles and packages."""
    from interactives.npm import find_tool, install_packages

    install_packages(BOOK)
    modules = BOOK / "node_modules"
    bundle = tmp_path / f"{name}.test.mjs"
    bundling = (
        *(find_tool("node"), str(modules / "esbuild" / "bin" / "esbuild"), str(HERE / f"{name}.test.mjs")),
        *("--bundle", "--platform=node", "--format=esm", "--loader:.py=text", "--external:*/pyodide.mjs"),
        f"--outfile={bundle}",
    )
    environment = os.environ | {"NODE_PATH": str(modules), "PYODIDE": str(modules / "pyodide")}
    for command in (bundling, (find_tool("node"), "--test", str(bundle))):
        done = subprocess.run(command, capture_output=True, text=True, env=environment)
        assert done.returncode == 0, (done.stdout + done.stderr)[-3000:]


def test_a_policy_names_the_inline_scripts_of_its_page_and_no_data() -> None:
    from page_policy import policy

    html = '<script>go()</script><script src="a.js"></script><script type="application/json">{"a": 1}</script>'
    # printf 'go()' | openssl dgst -sha256 -binary | base64
    assert "script-src 'self' 'sha256-5KYv+PUboo5h+0+YAtGRPbwv5d/QxzHslP4YGnUaxRw='; " in policy(html)
    assert "http" not in policy(html)


def test_another_host_is_allowed_only_where_the_discussion_lives_there() -> None:
    from page_policy import GISCUS, finish

    page = '<head><meta charset="utf-8" /></head>'
    assert "giscus" not in finish(page)
    allowed = finish(page, GISCUS)
    assert "script-src 'self' https://giscus.app;" in allowed
    assert "frame-src https://giscus.app" in allowed


def test_a_corner_of_a_table_is_no_heading_and_a_disclosure_has_a_name() -> None:
    from page_policy import finish

    page = '<th class="head"><p></p></th><details><summary><span class="toctree-toggle" role="presentation">x</span>'
    told = finish(page)
    assert told.startswith("<td></td>")
    assert '<summary aria-label="Pages below">' in told


def test_the_service_worker_keeps_pages_at_once_and_python_apart(tmp_path: Path) -> None:
    from page_policy import book_files

    for name in ("index.html", "_static/course/pyodide/pyodide.asm.wasm", "_sources/index.md", "sw.js"):
        file = tmp_path / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text("x")
    assert book_files(tmp_path) == (["index.html"], ["_static/course/pyodide/pyodide.asm.wasm"])


def test_a_search_text_holds_each_section_once_with_its_numbers_and_without_buttons_and_contents() -> None:
    from search_texts import sections

    html = (
        "<nav>Contents: Bounds</nav><article><section id='top'><h1>Decode<a class='headerlink'>#</a></h1>"
        "<p class='lesson-tools'>Open</p><p>At most <b>208.6</b> tokens.</p>"
        "<section id='bounds'><h2>Bounds</h2><p>8,030,261,248 parameters, "
        "<span class='katex'><span class='katex-mathml'><math><mi>P</mi><annotation>P_{x}</annotation></math></span>"
        "<span class='katex-html'>P</span></span></p></section></section></article>"
    )
    found = {one["anchor"]: one for one in sections(html, "a.html")}
    assert found[""]["text"] == "At most 208.6 tokens."
    assert (found["bounds"]["heading"], found["bounds"]["text"]) == ("Bounds", "8,030,261,248 parameters, P")
    assert {one["title"] for one in found.values()} == {"Decode"}


@pytest.mark.parametrize(
    "tag",
    [
        '<img src="../_images/a.png" style="width: 640px; height: 400px;" alt="x">',
        '<img src="../_images/a.png" width="640" height="400" alt="x">',
        '<img alt="x" style="height:400px;width:640px" src="../_images/a.png">',
    ],
)
def test_a_figure_keeps_its_shape_where_its_width_yields(tag: str) -> None:
    from course_site import FIXED_SIZE

    assert "height" not in FIXED_SIZE.sub("", tag)


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


def test_the_home_figure_counts_the_weights_and_each_users_cache() -> None:
    from home_figure import numbers

    found = numbers()
    # (8,030,261,248 parameters of 2 bytes + 1,000 tokens of 131,072 bytes) / 2.039 TB/s = 7.941 ms on an A100
    alone = found["a100-80g 16 1"]
    assert (alone["weights"], alone["ms"], alone["tokens"], alone["idle"]) == ("16.1 GB", 7.941, "126", "99.3%")
    # 32 caches beside the same weights: (16.0605 GB + 32 times 0.1311 GB) / 2.039 TB/s = 9.934 ms for 32 tokens
    assert (found["a100-80g 16 32"]["ms"], found["a100-80g 16 32"]["tokens"]) == (9.934, "3,221")
    assert not any("h100" in key for key in found)  # its answer is asked for in lesson 1


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


def test_the_reference_has_every_room_once() -> None:
    pages = "".join(file.read_text("utf-8") for file in (BOOK / "reference").glob("*.md"))
    for package, not_shown in (
        ("reference_impl", {"common", "benchmarks", "commands", "pair"}),
        ("autograder", {"commands", "public"}),
    ):
        rooms = {folder.parent.name for folder in (ROOT / package).glob("*/__init__.py")} - not_shown
        named = re.findall(rf"\b{package}\.(\w+)\.\*", pages)
        assert sorted(named) == sorted(rooms)


def test_site_and_figures_use_the_same_scheduler_of_reviews() -> None:
    book = json.loads((BOOK / "package.json").read_text())["dependencies"]
    figures = json.loads((ROOT / "interactives" / "package.json").read_text())["devDependencies"]
    assert book["ts-fsrs"] == figures["ts-fsrs"]
    assert book["esbuild"] == figures["esbuild"]
