"""Lays out the folder that Sphinx reads: pages, assets, the site's own scripts, Python for the browser, and a page for
each practice exercise. Whatever comes from npm is copied here, so that a page needs no other host.
"""

import json
import re
import shutil
import subprocess
from pathlib import Path

import yaml

from autograder.course import model_answers
from interactives.npm import NpmError, find_tool

HERE = Path(__file__).resolve().parent
NODE_MODULES = HERE / "node_modules"
NOT_PAGES = {"README.md", "_build", "node_modules", "__pycache__", "package.json", "package-lock.json", "site"} | {
    file.name for file in HERE.glob("*.py")
}
PYODIDE = ("pyodide.mjs", "pyodide.asm.mjs", "pyodide.asm.wasm", "python_stdlib.zip")
FONTS = {
    "text": ("source-serif-4", "source-serif-4-latin-400-normal"),
    "text-italic": ("source-serif-4", "source-serif-4-latin-400-italic"),
    "text-bold": ("source-serif-4", "source-serif-4-latin-600-normal"),
    "code": ("source-code-pro", "source-code-pro-latin-400-normal"),
}
CHARACTERS = "".join(map(chr, range(32, 127))) + "\u00a0©·×÷±µ²³°éèêëüöäßøåçñ–—‘’“”…−"
MAP_COMMENT = re.compile(r"^//# sourceMappingURL=.*$", re.MULTILINE)


def lay_out(root: Path, source: Path) -> None:
    """Fill `source` from `root`/book and `root`/exercises/practice. Raises NpmError where a script does not bundle."""
    shutil.copytree(root / "book", source, ignore=lambda folder, names: NOT_PAGES & set(names))
    assets = source / "_assets"
    _katex(assets / "katex")
    _fonts(assets / "fonts")
    sizes = _pyodide(assets / "course" / "pyodide")
    _scripts(assets / "course", sizes)
    shutil.copy(HERE / "site" / "service_worker.js", source / "_sw.js")
    shutil.copy(HERE / "site" / "program_limits.json", source / "_program_limits.json")
    if (root / "exercises" / "practice").is_dir():
        _practice(root / "exercises" / "practice", source)
    if (root / "exercises" / "source").is_dir():
        shutil.copytree(root / "exercises" / "source", source / "_problem_sets")
        if model_answers.shown(root / "exercises"):
            (source / "_problem_sets" / "model_answers_shown").touch()
    if (root / "CONTRIBUTING.md").is_file():
        shutil.copy(root / "CONTRIBUTING.md", source / "_contributing.md")


def _katex(target: Path) -> None:
    """Style sheet and fonts of KaTeX. Browsers since 2018 take woff2: older forms of a font stay behind."""
    katex = NODE_MODULES / "katex" / "dist"
    (target / "fonts").mkdir(parents=True)
    style_sheet = re.sub(
        r',url\([^)]*\.(?:woff|ttf)\) format\("[a-z]+"\)', "", (katex / "katex-swap.min.css").read_text()
    )
    (target / "katex.min.css").write_text(style_sheet)
    for font in (katex / "fonts").glob("*.woff2"):
        shutil.copy(font, target / "fonts")


def _fonts(target: Path) -> None:
    """The faces of the site, cut down to the characters that its pages use. Licence: SIL OFL 1.1, beside them."""
    from fontTools import subset

    target.mkdir(parents=True)
    for name, (package, file) in FONTS.items():
        folder = NODE_MODULES / "@fontsource" / package
        options = subset.Options(
            flavor="woff2", layout_features=["kern", "liga", "tnum", "lnum", "mark"], hinting=False
        )
        font = subset.load_font(str(folder / "files" / f"{file}.woff2"), options)
        cutter = subset.Subsetter(options)
        cutter.populate(text=CHARACTERS)
        cutter.subset(font)
        subset.save_font(font, str(target / f"{name}.woff2"), options)
        shutil.copy(folder / "LICENSE", target / f"LICENSE-{package}.txt")


def _pyodide(target: Path) -> dict[str, int]:
    """CPython for the browser, without its list of packages, of which none is there; returns the size of each file."""
    target.mkdir(parents=True)
    for name in PYODIDE:
        if name.endswith(".mjs"):
            text = (NODE_MODULES / "pyodide" / name).read_text("utf-8")
            (target / name).write_text(MAP_COMMENT.sub("", text), "utf-8")
        else:
            shutil.copy(NODE_MODULES / "pyodide" / name, target / name)
    lock = json.loads((NODE_MODULES / "pyodide" / "pyodide-lock.json").read_text())
    (target / "pyodide-lock.json").write_text(json.dumps(lock | {"packages": {}}))
    return {name: (target / name).stat().st_size for name in PYODIDE}


def _scripts(target: Path, sizes: dict[str, int]) -> None:
    """The scripts of book/site, bundled."""
    command = [find_tool("node"), str(HERE / "site" / "build.mjs"), str(target), json.dumps(sizes)]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        raise NpmError(f"the site's scripts do not bundle:\n{done.stderr.strip()}")


def _practice(exercises: Path, source: Path) -> None:
    """The exercises for the directive, and a page for each: its prompt, then the editor."""
    shutil.copytree(exercises, source / "_practice", ignore=shutil.ignore_patterns("__pycache__"))
    seconds = json.loads((HERE / "site" / "program_limits.json").read_text())["seconds"]
    for file in sorted((source / "_practice").glob("*/exercise.yml")):
        exercise = yaml.safe_load(file.read_text("utf-8"))
        cases = len(exercise["samples"]) + len(exercise.get("cases", [])) + len(exercise.get("refused", []))
        page = (
            f"# {exercise['title']}\n\n"
            f'<p class="practice-facts"><span class="practice-xp">{exercise["xp"]} XP</span> · {cases} cases · '
            f"Python runs in your browser, for at most {seconds} seconds a program; your code stays there.</p>\n\n"
            f"{exercise['prompt'].rstrip()}\n\n## Your program\n\n```{{practice}} {exercise['id']}\n```\n"
        )
        (source / "practice").mkdir(exist_ok=True)
        (source / "practice" / f"{exercise['id']}.md").write_text(page, "utf-8")
