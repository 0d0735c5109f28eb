"""The build: it runs lessons from clean, and stops at anything that should not be published."""

import json
import re
import shutil
from pathlib import Path

import nbformat
import pytest
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook
from site_tools import BOOK, build_book


@pytest.fixture
def tiny(tmp_path: Path) -> Path:
    """A root folder whose book has the course's configuration, a home page and one lesson, notebooks/tiny.ipynb."""
    for name in ("_config.yml", "_ext", "_templates", "_assets", "references.bib"):
        source, target = BOOK / name, tmp_path / "book" / name
        target.parent.mkdir(exist_ok=True)
        (shutil.copytree if source.is_dir() else shutil.copy)(source, target)
    (tmp_path / "book" / "_toc.yml").write_text("format: jb-book\nroot: index\nchapters: [{file: notebooks/tiny}]\n")
    (tmp_path / "book" / "index.md").write_text("# A tiny book\n\n```{bibliography}\n:all:\n```\n")
    return tmp_path


def write_lesson(root: Path, *cells: nbformat.NotebookNode) -> None:
    (root / "notebooks").mkdir(exist_ok=True)
    kernel = {"kernelspec": {"name": "python3", "display_name": "Python 3", "language": "python"}}
    nbformat.write(new_notebook(cells=list(cells), metadata=kernel), root / "notebooks" / "tiny.ipynb")


@pytest.mark.slow
def test_a_changed_constant_changes_the_page_though_no_cell_changed(tiny: Path) -> None:
    write_lesson(tiny, new_markdown_cell("# Tiny"), new_code_cell("import helper\nprint('bound', helper.BOUND)"))
    helper = tiny / "notebooks" / "helper.py"  # a lesson's own folder is on its path, as in JupyterLab
    page = tiny / "book" / "_build" / "html" / "notebooks" / "tiny.html"

    helper.write_text("BOUND = 208.6\n")
    assert build_book(tiny).returncode == 0
    assert "bound 208.6" in page.read_text()

    helper.write_text("BOUND = 417.2\n")
    assert build_book(tiny, "--if-changed").returncode == 0
    assert "bound 417.2" in page.read_text()
    assert "bound 208.6" not in page.read_text()


def test_a_cell_that_raises_stops_the_build_which_names_page_and_cell(tiny: Path) -> None:
    write_lesson(
        tiny,
        new_markdown_cell("# Tiny"),
        new_code_cell("weights = [0.12, -0.5]"),
        new_code_cell("weights[2]  # there are only two"),
    )
    done = build_book(tiny)
    assert done.returncode == 1
    assert (
        "notebooks/tiny.ipynb, cell 3 of 3 ('weights[2]  # there are only two'): IndexError: list index" in done.stderr
    )
    assert not (tiny / "book" / "_build" / "html").exists()


@pytest.mark.slow
def test_a_bad_formula_and_a_missing_reference_stop_the_build_which_names_page_and_line(tiny: Path) -> None:
    write_lesson(tiny, new_markdown_cell("# Tiny\n\nA bad formula, $\\nosuchcommand$.\n\n[To nowhere](nowhere.md)."))
    done = build_book(tiny)
    assert done.returncode == 1
    assert "Undefined control sequence: \\nosuchcommand" in done.stderr.replace("\u0332", "")
    assert "notebooks/tiny.ipynb:" in done.stderr
    assert "nowhere.md" in done.stderr
    assert not (tiny / "book" / "_build" / "html").exists()


@pytest.mark.parametrize(
    ("cell", "told"),
    [
        (
            new_code_cell("import ipywidgets\nipywidgets.IntSlider(description='group size')"),
            "its widget (IntSliderModel) leaves nothing that a page can show",
        ),
        (
            new_code_cell("from IPython.display import Image\nimport base64\nImage(base64.b64decode('iVBORw0KGgo='))"),
            "its figure has no description",
        ),
        (
            new_code_cell("import warnings\nwarnings.warn('half the numbers are guesses')"),
            "half the numbers are guesses",
        ),
    ],
    ids=["a widget without a picture", "a figure without a description", "a warning"],
)
def test_what_a_page_cannot_show_well_stops_the_build(tiny: Path, cell: nbformat.NotebookNode, told: str) -> None:
    write_lesson(tiny, new_markdown_cell("# Tiny"), cell)
    done = build_book(tiny)
    assert done.returncode == 1
    assert "notebooks/tiny.ipynb, cell 2 of 2" in done.stderr
    assert told in done.stderr


def test_a_slider_made_with_interact_becomes_what_it_drew(tiny: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(BOOK)
    from lesson import run_lesson

    write_lesson(
        tiny,
        new_code_cell(
            "import ipywidgets\n\ndef show(group):\n    print('drawn for', group)\n\n"
            "ipywidgets.interact(show, group=ipywidgets.IntSlider(64, 1, 256, description='group size'));"
        ),
    )
    notebook = run_lesson(tiny / "notebooks" / "tiny.ipynb", "tiny")
    note, drawn = notebook.cells[0].outputs
    assert note.data["text/html"].startswith('<p class="still-note">Interactive in JupyterLab; ')
    assert "shown here for <strong>group size 64</strong>" in note.data["text/html"]
    assert drawn.text == "drawn for 64\n"
    assert "widgets" not in notebook.metadata


def test_the_share_of_other_programs_is_what_all_used_less_what_this_one_did(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(BOOK)
    import machine_load

    stat, times = tmp_path / "stat", (10.0, 0.0, 0.0, 0.0, 0.0)
    monkeypatch.setattr(machine_load.os, "times", lambda: times)
    monkeypatch.setattr(machine_load.os, "sysconf", lambda name: 100)
    stat.write_text("cpu 1000 0 0 9000 0 0 0 0\ncpu0 0\n")
    others = machine_load.Others(stat)
    times = (10.0, 0.0, 25.0, 5.0, 0.0)  # the kernel, a child, took 30 s
    stat.write_text("cpu 9000 0 0 11000 0 0 0 0\ncpu0 0\n")  # 80 s of 100 were used
    assert others.share() == pytest.approx(0.5)
    assert machine_load.Others(tmp_path / "nothing").share() is None


@pytest.mark.parametrize(("share", "marked"), [(None, False), (0.02, False), (0.43, True)])
def test_a_lesson_that_was_measured_on_a_busy_machine_is_marked(
    share: float | None, marked: bool, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.syspath_prepend(BOOK)
    from build import mark_if_busy

    notebook = new_notebook(cells=[new_markdown_cell("# Tiny")], metadata={"course": {"others": share}})
    mark_if_busy(notebook, "notebooks/tiny.ipynb")
    assert len(notebook.cells) == (2 if marked else 1)
    if marked:
        assert "other programs took 43% of its processors" in notebook.cells[1].source
        assert "busy machine (others took 43%)" in capsys.readouterr().out


@pytest.mark.slow
def test_a_page_has_one_style_sheet_no_script_of_the_theme_and_the_home_page_leads_into_the_first_lesson(
    tiny: Path,
) -> None:
    write_lesson(tiny, new_markdown_cell("# Tiny: a lesson\n\n**Time:** about a minute."))
    (tiny / "notebooks" / "tiny.ipynb").rename(tiny / "notebooks" / "01_tiny.ipynb")
    (tiny / "book" / "_toc.yml").write_text("format: jb-book\nroot: index\nchapters: [{file: notebooks/01_tiny}]\n")
    (tiny / "book" / "index.md").write_text(
        "# A tiny book\n\nIt says what it is.\n\n```{home-figure}\n```\n\n```{start-here}\n```\n\n"
        "```{lesson-list}\n01_tiny: Say something.\n```\n\n```{bibliography}\n:all:\n```\n"
    )
    done = build_book(tiny)
    assert done.returncode == 0, done.stderr
    site = tiny / "book" / "_build" / "html"
    html = (site / "index.html").read_text("utf-8")
    assert len(re.findall(r'<link[^>]*rel="stylesheet"', html)) == 1
    scripts = re.findall(r'<script[^>]*src="([^"?]+)', html)
    assert scripts == ["_static/course/site.js"]
    assert '<meta name="description" content="It says what it is." />' in html
    assert '<a class="start" href="notebooks/01_tiny.html"' in html
    assert ">Start lesson 1</a> <span>About a minute. You need a browser" in html
    assert re.search(r'<b data-home="tokens">126</b>', html)
    card = html[html.index("lesson-cards") :]
    assert "1 · Tiny: a lesson" in card
    assert "Say something." in card
    assert "about a minute" in card
    assert (site / "404.html").is_file()
    assert {"A tiny book", "Tiny: a lesson"} <= {
        one["heading"] for one in json.loads((site / "searchtext.json").read_text())
    }
    for sheet in site.rglob("*.css"):
        for name in re.findall(r"url\(\s*['\"]?([^'\")]+)", sheet.read_text("utf-8")):
            assert name.startswith(("data:", "#")) or (sheet.parent / name.split("?")[0]).exists(), name


def test_a_lesson_that_the_contents_name_but_nobody_wrote_is_named(tiny: Path) -> None:
    done = build_book(tiny)
    assert done.returncode == 1
    assert "names notebooks/tiny.ipynb, which does not exist" in done.stderr


def test_the_bibliography_holds_the_sources_of_the_course_complete() -> None:
    from pybtex.database import parse_file

    entries = parse_file(str(BOOK / "references.bib")).entries
    found = {
        key: (entry.persons["author"][0].last_names[0], len(entry.persons["author"]), entry.fields["year"])
        for key, entry in entries.items()
    }
    expected = {
        "kwon2023pagedattention": ("Kwon", 9, "2023"),
        "leviathan2023speculative": ("Leviathan", 3, "2023"),
        "frantar2023gptq": ("Frantar", 4, "2023"),
        "lin2024awq": ("Lin", 10, "2024"),
        "cs336lecture10": ("Liang", 1, "2025"),
    }
    assert expected.items() <= found.items()
    assert [key for key, entry in entries.items() if not entry.fields.get("url", "").startswith("https://")] == []


def test_the_npm_lock_names_versions_and_digests_but_no_host() -> None:
    lock = json.loads((BOOK / "package-lock.json").read_text())
    packages = {name: entry for name, entry in lock["packages"].items() if name}
    assert (
        packages["node_modules/katex"]["version"]
        == json.loads((BOOK / "package.json").read_text())["dependencies"]["katex"]
    )
    assert [name for name, entry in packages.items() if "resolved" in entry] == []
    assert [name for name, entry in packages.items() if not entry["integrity"].startswith("sha512-")] == []
