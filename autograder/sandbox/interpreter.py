"""Which folders a Python needs to run in a sandbox, and what in them a learner must not see.

A sandbox starts empty, so nothing has to be hidden but what is inside the folders that Python needs: packages installed
from a folder on this machine (`pip install -e .`, `pip install .`), the course itself among them, and the files through
which an editable install leads to its sources. Of these, only the modules on an assignment's allow-list are copied, to
a folder of their own.
"""

from __future__ import annotations

import importlib.machinery
import importlib.metadata
import json
import os
import shutil
import site
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from importlib.machinery import PathFinder
from pathlib import Path

_PARTS = ("bin", "lib", "lib64", "share", "ssl", "pyvenv.cfg")  # of a prefix; not etc, nor a pip.conf with passwords
_SYSTEM = ("/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32", "/nix/store", "/gnu/store")
_SETTINGS = ("ld.so.cache", "ld.so.conf", "ld.so.conf.d", "alternatives", "localtime", "fonts", "mime.types")


@dataclass(frozen=True)
class Interpreter:
    """A Python as seen from a sandbox: `folders` are bound read-only at their own place, `hidden` lie inside them."""

    executable: str
    folders: list[Path]
    links: dict[str, str]  # symbolic links to make: place -> target
    hidden: list[Path]
    path: list[Path]  # folders that have to be named in PYTHONPATH


@lru_cache(maxsize=8)
def this_python(hide: tuple[Path, ...] = ()) -> Interpreter:
    """The running Python; `hide` are further folders of which nothing may be seen."""
    folders, links = [], {}
    for name in _SYSTEM:
        if os.path.islink(name):  # /bin -> usr/bin and the like
            links[name] = os.readlink(name)
        elif os.path.isdir(name):
            folders.append(Path(name))
    folders += [Path("/etc") / name for name in _SETTINGS]
    prefixes = {Path(prefix) for prefix in (sys.prefix, sys.exec_prefix, sys.base_prefix, sys.base_exec_prefix)}
    folders += [prefix / part for prefix in prefixes if prefix != Path("/usr") for part in _PARTS]
    sites = [Path(folder) for folder in site.getsitepackages()]
    users = [Path(site.getusersitepackages())] if site.ENABLE_USER_SITE else []
    folders = _outermost([path for path in folders + sites + users if path.exists()])

    # bin/python is a link to a link ...: each step has to exist inside.
    step = sys.executable
    while os.path.islink(step):
        target = os.path.normpath(os.path.join(os.path.dirname(step), os.readlink(step)))
        if not any(_inside(Path(target), folder) for folder in folders):
            if os.path.islink(target):
                links[target] = os.readlink(target)
            else:
                folders.append(Path(target))
        step = target

    hidden = [path for path in hide if any(_inside(path, folder) for folder in folders)]
    hidden += [path for folder in (*sites, *users) for path in local_files(folder)]
    # A grading kernel needs no debugger, and importing it would cost each kernel seconds.
    hidden += [path for folder in (*sites, *users) if (path := folder / "debugpy").is_dir()]
    return Interpreter(sys.executable, folders, links, _outermost(hidden), [path for path in users if path.exists()])


def local_modules() -> list[str]:
    """Names of the top-level modules of packages that were installed from a folder of this machine."""
    named = [distribution.read_text("top_level.txt") or "" for distribution in _local(None)]
    return sorted({name for text in named for name in text.split()})


def _local(folder: Path | None) -> Iterator[importlib.metadata.Distribution]:
    """The packages installed from a folder of this machine, among those in `folder`, or among all."""
    for distribution in importlib.metadata.distributions(path=sys.path if folder is None else [str(folder)]):
        if "dir_info" in json.loads(distribution.read_text("direct_url.json") or "{}"):
            yield distribution


def local_files(folder: Path) -> list[Path]:
    """What packages installed from a folder of this machine have put into a `site-packages` folder: its top entries.

    Raises RuntimeError when such a package does not say what its files are.
    """
    found: set[Path] = set()
    for distribution in _local(folder):
        if distribution.files is None:
            raise RuntimeError(
                f"{distribution.metadata['Name']} in {folder} has no RECORD of its files; install it again"
            )
        for file in distribution.files:
            top = file.parts[1] if file.parts[0] == "__pycache__" else file.parts[0]
            if top != "..":  # bin/ and the like
                path = folder / ("__pycache__" if file.parts[0] == "__pycache__" else "") / top
                found.add(path)
    # The old way to install an editable package leaves a link file and a line in a common .pth.
    found.update(folder.glob("*.egg-link"))
    found.update(folder.glob("easy-install.pth"))
    return sorted(path for path in found if path.exists())


def copy_allowed(names: tuple[str, ...], target: Path) -> None:
    """Copy the modules or packages with these dotted names, and nothing else of their packages, below `target`.

    The packages around a module are there too, with their `__init__.py` alone. Raises LookupError for an unknown name.
    Nothing is imported, so nothing of the course runs here.
    """
    for name in names:
        search: list[str] | None = None
        parts = name.split(".")
        place = target
        for depth, part in enumerate(parts, start=1):
            spec = _find(".".join(parts[:depth]), search)
            last = depth == len(parts)
            if spec.submodule_search_locations is None:
                if not last:
                    raise LookupError(f"allowed module {name!r}: {'.'.join(parts[:depth])} is no package")
                shutil.copyfile(str(spec.origin), place / Path(str(spec.origin)).name)
                break
            search = list(spec.submodule_search_locations)
            place = place / part
            if last:
                ignored = shutil.ignore_patterns("__pycache__", ".*")
                shutil.copytree(search[0], place, dirs_exist_ok=True, ignore=ignored, copy_function=shutil.copyfile)
            else:
                place.mkdir(exist_ok=True)
                start = Path(search[0]) / "__init__.py"
                if start.exists():
                    shutil.copyfile(start, place / "__init__.py")


def _find(name: str, search: list[str] | None) -> importlib.machinery.ModuleSpec:
    finders = [PathFinder] if search is not None else sys.meta_path  # an editable package has a finder of its own
    for finder in finders:
        spec = finder.find_spec(name, search)
        if spec is not None and (spec.submodule_search_locations or spec.origin):
            return spec
    raise LookupError(f"allowed module {name!r} is not installed here")


def _inside(path: Path, folder: Path) -> bool:
    return path == folder or folder in path.parents


def _outermost(paths: list[Path]) -> list[Path]:
    """The paths that lie in none of the others, without repeats."""
    distinct = list(dict.fromkeys(paths))
    return [path for path in distinct if not any(other in path.parents for other in distinct)]
