"""The checks that hold for the whole repository: style, types, direction of imports, and what may be committed."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
import yaml

from interactives import npm

ROOT = Path(__file__).resolve().parent.parent
PYPROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())


def tracked(pattern: str = "*") -> list[Path]:
    names = subprocess.run(["git", "ls-files", "-z", pattern], cwd=ROOT, capture_output=True, text=True, check=True)
    return [ROOT / name for name in names.stdout.split("\0") if name and (ROOT / name).is_file()]


def text_of(path: Path) -> str:
    try:
        return path.read_text()
    except UnicodeDecodeError:
        return ""


@pytest.mark.parametrize(
    "command",
    [
        ("ruff", "check"),
        ("ruff", "format", "--check"),
        ("mypy",),
    ],
    ids=" ".join,
)
def test_style_and_types(command: tuple[str, ...]) -> None:
    done = subprocess.run([sys.executable, "-m", *command], cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr


def test_style_of_the_javascript() -> None:
    npm.install_packages(ROOT / "interactives")
    biome = ROOT / "interactives" / "node_modules" / ".bin" / "biome"
    command = [biome, "ci", "--error-on-warnings", "--colors=off"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr


def test_imports_go_one_way() -> None:
    code = "import sys; from importlinter.cli import lint_imports_command; sys.exit(lint_imports_command())"
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr


def test_notebooks_are_committed_without_outputs() -> None:
    with_outputs = [
        str(path.relative_to(ROOT))
        for path in tracked("*.ipynb")
        if "submissions" not in path.parts
        and any(cell.get("outputs") or cell.get("execution_count") for cell in json.loads(path.read_text())["cells"])
    ]
    assert with_outputs == []


def test_the_conda_environment_takes_its_packages_from_pyproject_and_constraints() -> None:
    environment = yaml.safe_load((ROOT / "environment.yml").read_text())
    plain = [item for item in environment["dependencies"] if isinstance(item, str)]
    (pip,) = [item["pip"] for item in environment["dependencies"] if isinstance(item, dict)]
    assert environment["name"] == PYPROJECT["project"]["name"]
    assert plain == ["python" + PYPROJECT["project"]["requires-python"], "pip"]
    assert pip == ["--constraint constraints.txt", "--editable .[lab]"]


def normal(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def test_every_direct_dependency_has_an_exact_version_that_its_range_admits() -> None:
    from packaging.requirements import Requirement

    pinned: dict[str, set[str]] = {}
    for line in (ROOT / "constraints.txt").read_text().splitlines():
        if line and not line.startswith("#"):
            name, version = line.split(";")[0].strip().split("==")
            pinned.setdefault(normal(name), set()).add(version)
    project = PYPROJECT["project"]
    wanted = [
        *project["dependencies"],
        *(item for group in project["optional-dependencies"].values() for item in group),
    ]
    for requirement in map(Requirement, wanted):
        if normal(requirement.name) == project["name"]:
            continue
        versions = pinned.get(normal(requirement.name), set())
        assert versions, f"{requirement.name} has no line in constraints.txt"
        assert all(requirement.specifier.contains(version) for version in versions), requirement


def test_a_learners_install_has_no_book_or_test_tools() -> None:
    project = PYPROJECT["project"]
    learner = " ".join([*project["dependencies"], *project["optional-dependencies"]["lab"]])
    for tool in ("pytest", "jupyter-book", "sphinx", "playwright", "hypothesis", "mypy", "ruff", "transformers"):
        assert tool not in learner


def test_no_file_names_a_home_folder_or_a_package_mirror() -> None:
    machine = re.compile(
        r"/(?:home|Users)/[a-z]\w*/|/root/\.|(?:index-url|find-links|registry)\s*=\s*https?://",
        re.IGNORECASE,
    )
    found = [
        f"{path.relative_to(ROOT)}: {match.group()}"
        for path in tracked()
        if path != Path(__file__).resolve()
        for match in machine.finditer(text_of(path))
    ]
    assert found == []


def test_npm_lock_files_resolve_to_the_public_registry_or_name_none() -> None:
    hosts = {
        match.group(1)
        for path in tracked("*package-lock.json")
        for match in re.finditer(r'"resolved":\s*"https?://([^/"]+)', path.read_text())
    }
    assert hosts <= {"registry.npmjs.org"}


def test_no_file_in_git_is_larger_than_26_megabytes() -> None:
    assert [str(path) for path in tracked() if path.stat().st_size > 26_000_000] == []
