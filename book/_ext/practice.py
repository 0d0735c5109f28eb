"""Sphinx extension: a practice exercise on its page, from the files of exercises/practice alone.

    ```{practice} 01_groupwise_int8
    ```

Expected outputs are what the exercise's own solution prints when the site is built. Without scripts and on paper a
reader gets samples and starter; the editor is site/practice.js.
"""

import builtins
import io
import json
import sys
import types
from html import escape
from pathlib import Path
from typing import Any

import yaml
from docutils import nodes
from sphinx.application import Sphinx
from sphinx.config import Config
from sphinx.util.docutils import SphinxDirective

FOLDER = "_practice"  # where build.py puts exercises/practice


class ProgramError(Exception):
    """A solution fails on an input that it should answer, or answers one that it should refuse."""


def run_program(source: str, text: str) -> tuple[str, BaseException | None]:
    """Run a program on a standard input; return its output and the exception that ended it, if one did."""
    main = types.ModuleType("__main__")
    main.__dict__["__builtins__"] = builtins
    before = sys.stdin, sys.stdout
    sys.stdin = io.TextIOWrapper(io.BytesIO(text.encode()), encoding="utf-8")
    sys.stdout = out = io.StringIO()
    error: BaseException | None = None
    try:
        exec(compile(source, "solution.py", "exec", dont_inherit=True), main.__dict__)
    except SystemExit as stop:
        error = stop if stop.code not in (None, 0) else None
    except Exception as raised:
        error = raised
    finally:
        sys.stdin, sys.stdout = before
    return out.getvalue(), error


def read_exercise(folder: Path) -> dict[str, Any]:
    """Read an exercise: texts, starter, solution, and each case with its expected output. Raises ProgramError."""
    data = yaml.safe_load((folder / "exercise.yml").read_text("utf-8"))
    solution, starter = (folder / "solution.py").read_text("utf-8"), (folder / "starter.py").read_text("utf-8")

    def answered(case: dict[str, str]) -> dict[str, Any]:
        output, error = run_program(solution, case["input"])
        if error is not None:
            raise ProgramError(f"{folder.name}, case {case['name']!r}: the solution ends with {error!r}")
        return {"name": case["name"], "input": case["input"], "expected": output}

    def refused(case: dict[str, str]) -> dict[str, Any]:
        output, error = run_program(solution, case["input"])
        if error is None:
            raise ProgramError(f"{folder.name}, case {case['name']!r}: the solution accepts it and prints {output!r}")
        return {"name": case["name"], "input": case["input"], "refused": True}

    return {
        "id": data["id"],
        "title": data["title"],
        "xp": data["xp"],
        "samples": [answered(case) for case in data["samples"]],
        "cases": [answered(case) for case in data.get("cases", [])]
        + [refused(case) for case in data.get("refused", [])],
        "starter": starter,
        "solution": solution,
    }


def _paper(exercise: dict[str, Any]) -> str:
    """Samples and starter as HTML, for paper and for a page without scripts."""
    samples = "".join(
        f"<tr><th scope='row'>{escape(case['name'])}</th><td><pre>{escape(case['input'])}</pre></td>"
        f"<td><pre>{escape(case['expected'])}</pre></td></tr>"
        for case in exercise["samples"]
    )
    return (
        '<div class="practice-paper"><table><thead><tr><th scope="col">Sample</th><th scope="col">Input</th>'
        f'<th scope="col">Output</th></tr></thead><tbody>{samples}</tbody></table>'
        f"<p>The program starts as</p><pre>{escape(exercise['starter'])}</pre></div>"
    )


class Practice(SphinxDirective):
    required_arguments = 1

    def run(self) -> list[nodes.Node]:
        folder = Path(self.env.srcdir) / FOLDER / self.arguments[0]
        try:
            exercise = read_exercise(folder)
        except (OSError, KeyError, yaml.YAMLError, ProgramError) as error:
            raise self.error(f"practice {self.arguments[0]}: {error}") from error
        self.env.note_dependency(str(folder / "exercise.yml"))
        data = json.dumps(exercise, ensure_ascii=False).replace("<", "\\u003c")  # no text can end the script element
        html = (
            f'<div class="practice">{_paper(exercise)}'
            f'<script type="application/json">{data}</script>'
            "<noscript><p>The editor needs JavaScript.</p></noscript></div>"
        )
        return [nodes.raw("", html, format="html")]


def exercises(source: Path) -> list[dict[str, Any]]:
    """id, title, points and number of cases of each exercise, in order."""
    found = []
    for file in sorted((source / FOLDER).glob("*/exercise.yml")):
        data = yaml.safe_load(file.read_text("utf-8"))
        cases = len(data["samples"]) + len(data.get("cases", [])) + len(data.get("refused", []))
        found.append({"id": data["id"], "title": data["title"], "xp": data["xp"], "cases": cases})
    return found


class PracticeList(SphinxDirective):
    """All exercises as a table: title, points, cases."""

    def run(self) -> list[nodes.Node]:
        head = "| Exercise | Points | Cases |\n|---|---|---|\n"
        rows = [
            f"| [{one['title']}](practice/{one['id']}.md) | {one['xp']} XP | {one['cases']} |"
            for one in exercises(Path(self.env.srcdir))
        ]
        return self.parse_text_to_nodes(head + "\n".join(rows))


def _offer_limits(app: Sphinx, config: Config) -> None:
    """Pages quote the limits of a run as {{ practice_seconds }}; they stand in site/program_limits.json alone."""
    file = Path(app.srcdir) / "_program_limits.json"
    if file.exists():
        limits = {"practice_seconds": json.loads(file.read_text())["seconds"]}
        config.myst_substitutions = {**config.myst_substitutions, **limits}


def setup(app: Sphinx) -> dict:
    app.connect("config-inited", _offer_limits)
    app.add_directive("practice", Practice)
    app.add_directive("practice-list", PracticeList)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
