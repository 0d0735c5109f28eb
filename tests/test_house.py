"""What a reader is promised about the shape of the code: small rooms, short files, one direction, a short way in."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from types import FrameType
from typing import Any

import grimp
import pytest

ROOT = Path(__file__).resolve().parent.parent
PACKAGES = ("reference_impl", "autograder")
ENGINE = ROOT / "reference_impl"


def python_files(package: str) -> list[Path]:
    names = subprocess.run(
        ["git", "ls-files", "-z", f"{package}/*.py"], cwd=ROOT, capture_output=True, text=True, check=True
    ).stdout
    return [ROOT / name for name in names.split("\0") if name and (ROOT / name).is_file()]


def n_lines(path: Path) -> int:
    return len(path.read_text().splitlines())


# --- Rooms ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("package", PACKAGES)
def test_no_room_has_more_than_twelve_modules_and_folders(package: str) -> None:
    entries: dict[Path, set[Path]] = {}
    for path in python_files(package):
        while path != ROOT / package:
            if not path.name.startswith("__"):
                entries.setdefault(path.parent, set()).add(path)
            path = path.parent
    entries.pop(ENGINE, None)  # it holds the rooms themselves
    assert {str(folder.relative_to(ROOT)): len(found) for folder, found in entries.items() if len(found) > 12} == {}


@pytest.mark.parametrize("package", PACKAGES)
def test_no_file_has_more_than_350_lines(package: str) -> None:
    assert {path.name: n_lines(path) for path in python_files(package) if n_lines(path) > 350} == {}


@pytest.mark.parametrize("package", PACKAGES)
def test_no_docstring_announces_its_idea(package: str) -> None:
    found = [
        f"{path.relative_to(ROOT)}:{node.lineno}"
        for path in python_files(package)
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and "The one idea" in node.value
    ]
    assert found == []


# --- Imports --------------------------------------------------------------------------------------------------------


@cache
def imports(package: str) -> dict[str, set[str]]:
    """Which module imports which others, imports inside functions and for types alone included."""
    graph = grimp.build_graph(package, cache_dir=None)
    return {module: graph.find_modules_directly_imported_by(module) for module in graph.modules}


@pytest.mark.parametrize("package", PACKAGES)
def test_no_module_imports_itself_through_others(package: str) -> None:
    assert list(circles(imports(package))) == []


def circles(graph: dict[str, set[str]]) -> Iterator[list[str]]:
    """Groups of nodes that reach each other."""
    reach = {node: reachable(graph, node) for node in graph}
    seen: set[str] = set()
    for node in sorted(graph):
        group = sorted(other for other in reach[node] if node in reach[other])
        if len(group) > 1 and node not in seen:
            seen.update(group)
            yield group


def reachable(graph: dict[str, set[str]], start: str) -> set[str]:
    found, waiting = {start}, [start]
    while waiting:
        new = graph[waiting.pop()] - found
        found |= new
        waiting += new
    return found


def test_circles_are_found_however_long_they_are() -> None:
    graph = {"a": {"b"}, "b": {"c"}, "c": {"a", "d"}, "d": set(), "e": {"d"}}
    assert list(circles(graph)) == [["a", "b", "c"]]


@pytest.mark.parametrize("package", PACKAGES)
def test_rooms_import_only_from_rooms_below_them(package: str) -> None:
    contracts = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]["contracts"]
    (layers,) = [contract["layers"] for contract in contracts if contract.get("containers") == [package]]
    depth = {room: i for i, room in enumerate(layers)}
    upward = []
    for module, targets in imports(package).items():
        for target in targets:
            rooms = [name.split(".")[1] for name in (module, target) if "." in name]
            rooms = [room for room in rooms if room in depth]  # `autograder.late` is another name of `public/late.py`
            if len(rooms) == 2 and depth[rooms[1]] < depth[rooms[0]]:
                upward.append(f"{module} -> {target}")
    assert upward == []


# --- The reading path -----------------------------------------------------------------------------------------------

ROW = re.compile(r"^\| \d+ \| \[`([\w/]+\.py)`\]\(([\w/]+\.py)\) \| .* \| (\d+) \|$", re.MULTILINE)


def reading_path() -> list[tuple[Path, int]]:
    """The files of the README's table, in order, with the minutes that it promises."""
    rows = ROW.findall((ENGINE / "README.md").read_text())
    assert all(name == link for name, link, _ in rows)
    return [(ENGINE / name, int(minutes)) for name, _, minutes in rows]


def test_the_reading_path_leads_from_the_bounds_to_the_engine_in_at_most_2500_lines() -> None:
    files = [path for path, _ in reading_path()]
    assert files[0].parent.name == "bounds"
    assert files[-1] == ENGINE / "engine" / "engine.py"
    assert sum(map(n_lines, files)) <= 2500


def test_the_minutes_of_the_reading_path_follow_from_the_lines() -> None:
    """200 lines take about 10 minutes."""
    path = reading_path()
    for file, minutes in path:
        assert abs(minutes - n_lines(file) / 20) <= 5, file.name
    assert sum(minutes for _, minutes in path) == pytest.approx(sum(n_lines(file) for file, _ in path) / 20, rel=0.1)


def test_every_file_and_function_that_the_readme_names_exists() -> None:
    text = (ENGINE / "README.md").read_text()
    files = set(re.findall(r"`([\w/]+\.py)`", text))
    missing = [name for name in files if not (ENGINE / name).is_file()]
    assert missing == []
    named = re.findall(r"`([\w/]+\.py)`: ((?:`[\w.]+`(?:, | and )?)+)", text)
    assert named
    for file, functions in named:
        source = (ENGINE / file).read_text()
        for name in re.findall(r"`([\w.]+)`", functions):
            for part in name.split("."):
                assert re.search(rf"(?:def|class) {part}\b", source), f"{file} has no {name}"


# --- A request's way through the files ------------------------------------------------------------------------------


def test_an_eager_decode_step_of_a_two_layer_model_moves_between_files_fewer_than_80_times() -> None:
    import torch

    from reference_impl.bounds.config import ModelConfig
    from reference_impl.engine.config import EngineConfig
    from reference_impl.engine.engine import Engine
    from reference_impl.engine.request import Request
    from reference_impl.model.llama import Llama

    shape = ModelConfig("toy", 2, 64, 4, 2, 16, 96, 50, max_context=64)
    model = Llama(shape, torch.float32).randomize(torch.Generator().manual_seed(0))
    engine = Engine.for_llama(model, EngineConfig(recorded=False, n_blocks=16))
    engine.add(Request("r", (1, 2, 3), 20))
    for _ in range(3):  # prefill, and kernels that are compiled at their first use
        engine.step()
    n_moves = 0

    def count(frame: FrameType, event: str, argument: Any) -> None:
        nonlocal n_moves
        if event == "call" and frame.f_back is not None:
            to, origin = frame.f_code.co_filename, frame.f_back.f_code.co_filename
            n_moves += to != origin and to.startswith(str(ENGINE)) and origin.startswith(str(ENGINE))

    sys.setprofile(count)
    try:
        outputs = engine.step()
    finally:
        sys.setprofile(None)
    assert len(outputs) == 1
    assert n_moves < 80
