"""Build the site: run every lesson from clean, render all pages, fail on any error or warning.

    python book/build.py                  # book/_build/html
    python book/build.py --draft          # the same without running the lessons: to look at pages
    python book/build.py --if-changed     # only if a source differs from those of the site that lies there

Four steps. The npm packages of package-lock.json come into book/node_modules (only when the lock file changed); the
pages and the freshly run lessons are laid out side by side in book/_build/source, because a lesson lives in notebooks/
while Sphinx wants one folder; Jupyter Book renders them with warnings as errors; and each lesson offers for download
the notebook as it lies in notebooks/. Exit status: 0 built, 1 not built, with the reasons on standard error.
"""

import argparse
import hashlib
import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

sys.modules.setdefault("rfc3987_syntax", None)  # type: ignore[arg-type]  # optional for jsonschema, 3 s to import

import nbformat  # noqa: E402
from layout import NODE_MODULES, lay_out  # noqa: E402
from lesson import LessonError, run_lesson  # noqa: E402
from machine_load import BUSY, note  # noqa: E402
from nbformat.v4 import new_markdown_cell  # noqa: E402

from interactives.npm import NpmError, find_tool, install_packages  # noqa: E402

HERE = Path(__file__).resolve().parent
QUICK_IMPORT = "import sys; sys.modules.setdefault('rfc3987_syntax', None)"  # as above, for the child
SOURCES = (
    *("book", "notebooks", "reference_impl", "interactives", "autograder", "exercises/practice", "exercises/source"),
    *("pyproject.toml", "constraints.txt", "CONTRIBUTING.md"),
)


class BuildError(Exception):
    """The site cannot be built; the message says what to mend."""


def say(text: str) -> None:
    print(text, flush=True)


def fingerprint(root: Path) -> str:
    """A digest of everything that the site is made from: pages, lessons, and the code that computes their numbers."""
    digest = hashlib.sha256()
    for top in (root / name for name in SOURCES):
        for file in sorted(top.rglob("*")) if top.is_dir() else [top]:
            inside = file.relative_to(root)
            built = {"_build", "node_modules", "__pycache__", ".ipynb_checkpoints"} & set(inside.parts)
            if file.is_file() and not built:
                digest.update(f"{inside.as_posix()}\0{file.stat().st_size}\0".encode() + file.read_bytes())
    return digest.hexdigest()


def lessons_of(book: Path, notebooks: Path) -> list[str]:
    """The lessons named in _toc.yml, as 'notebooks/NAME.ipynb'."""
    from sphinx_external_toc.parsing import parse_toc_yaml

    names = [f"{doc}.ipynb" for doc in parse_toc_yaml(book / "_toc.yml") if doc.startswith("notebooks/")]
    for name in names:
        if not (notebooks.parent / name).is_file():
            raise BuildError(f"{book / '_toc.yml'} names {name}, which does not exist")
    return names


def check_figures(root: Path) -> None:
    """The figures' constants are those of reference_impl, or the site would show two truths. Raises BuildError."""
    if not (root / "interactives" / "generate.py").exists():
        return
    code = "from interactives.generate import TARGET, constants; raise SystemExit(TARGET.read_text() != constants())"
    if subprocess.run([sys.executable, "-c", code], cwd=root).returncode:
        raise BuildError(
            "the figures hold other constants than reference_impl: python -m interactives.generate, "
            "then npm run build in interactives/"
        )


def mark_if_busy(notebook: nbformat.NotebookNode, name: str) -> None:
    """Say on the page and here that a lesson was measured while other programs used the machine."""
    share = notebook.metadata.get("course", {}).get("others")
    if share is None or share <= BUSY:
        return
    cell = new_markdown_cell(note(share))
    if notebook.nbformat_minor < 5:
        cell.pop("id", None)
    notebook.cells.insert(1, cell)
    say(f"  {name}: measured on a busy machine (others took {share:.0%}); the page says so")


def run_lessons(root: Path, names: list[str], source: Path, store: Path | None = None) -> list[str]:
    """Run each lesson and put it, with its outputs, beside the pages; returns what went wrong.

    `store`: where a lesson that was run from these very sources may lie (`lesson_store`).
    """
    problems = []
    for name in names:
        start = time.perf_counter()
        line_ends = "\r" if sys.stdout.isatty() else ""

        def progress(done: int, total: int, name: str = name, end: str = line_ends) -> None:
            if end:
                print(f"  {name}: cell {done} of {total} ", end=end, flush=True)

        try:
            if store is None:
                notebook = run_lesson(root / name, name, progress)
            else:
                from lesson_store import run_once

                notebook = run_once(root, name, store, progress)
        except LessonError as error:
            problems.append(str(error))
            say(f"  {name}: FAILED after {time.perf_counter() - start:.0f} s")
            continue
        mark_if_busy(notebook, name)
        target = source / name
        target.parent.mkdir(parents=True, exist_ok=True)
        nbformat.write(notebook, target)
        say(f"  {name}: {len(notebook.cells)} cells in {time.perf_counter() - start:.0f} s")
    return problems


def render(source: Path, book: Path, strict: bool = True) -> None:
    """Jupyter Book over the laid-out folder: warnings are errors, missing references are warnings, all are shown."""
    command = [
        *(sys.executable, "-c", f"{QUICK_IMPORT}; from jupyter_book.cli.main import main; main()"),
        *("build", str(source)),
        *("--path-output", str(book), *(("-W",) if strict else ()), "-n", "--keep-going", "--all", "-q"),
    ]
    environment = os.environ | {"COURSE_NODE": find_tool("node"), "COURSE_NODE_MODULES": str(NODE_MODULES)}
    done = subprocess.run(command, env=environment, stdin=subprocess.DEVNULL, capture_output=True, text=True)
    if done.returncode:
        told = done.stderr.replace(f"{source}{os.sep}", "").strip()
        raise BuildError(f"Jupyter Book reports:\n{told or done.stdout.strip()}")


def build(root: Path, if_changed: bool = False, run: bool = True, store: Path | None = None) -> Path:
    """Build `root`/book with the lessons of `root`/notebooks; returns the folder of the site. Raises BuildError.

    `run` false: lessons as they lie in notebooks/, without outputs. Such a site is a draft and leaves no stamp.
    """
    book, notebooks = root / "book", root / "notebooks"
    built = book / "_build"
    source, site = built / "source", built / "html"

    sources = fingerprint(root)
    stamp = built / "sources.sha256"
    if if_changed and stamp.exists() and stamp.read_text() == sources:
        say("Nothing has changed since the site was built.")
        return site

    say("1/4 packages")
    check_figures(root)
    install_packages(HERE)
    names = lessons_of(book, notebooks)
    shutil.rmtree(built, ignore_errors=True)  # nothing of an earlier build may survive
    lay_out(root, source)

    if run:
        say(f"2/4 lessons: {len(names)} to run")
        if problems := run_lessons(root, names, source, store):
            raise BuildError("\n".join(problems))
    else:
        say(f"2/4 lessons: {len(names)}, without running them")
        for name in names:
            (source / name).parent.mkdir(exist_ok=True)
            shutil.copy(root / name, source / name)

    say("3/4 pages")
    try:
        render(source, book, strict=run)
    except BuildError:
        shutil.rmtree(site, ignore_errors=True)  # a site with a fault in it must not look like a good one
        raise

    say("4/4 downloads")
    for name in names:
        shutil.copy(root / name, site / "_sources" / name)
    shutil.rmtree(built / ".doctrees", ignore_errors=True)
    if run:
        stamp.write_text(sources)
    return site


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--root", type=Path, default=HERE.parent, help="folder that holds book/ and notebooks/")
    parser.add_argument("--if-changed", action="store_true", help="keep a site that was built from the same sources")
    parser.add_argument(
        "--draft", action="store_true", help="do not run the lessons, pass over warnings: to look at pages"
    )
    parser.add_argument("--lessons", type=Path, metavar="FOLDER", help="share runs of lessons there (for the tests)")
    arguments = parser.parse_args()
    start = time.perf_counter()
    try:
        site = build(arguments.root.resolve(), arguments.if_changed, not arguments.draft, arguments.lessons)
    except (BuildError, NpmError) as error:
        print(f"The book was not built.\n{error}", file=sys.stderr)
        return 1
    say(f"Built in {time.perf_counter() - start:.0f} s: {site / 'index.html'}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
