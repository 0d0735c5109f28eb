"""Sets up what a `make` target needs: the virtual environment, the packages, a browser for the tests.

Runs with nothing but a Python and its standard library. Each step says what it does; a step whose inputs have not
changed since it last succeeded is skipped, so a second run takes a fraction of a second. What is missing on the machine
is named, with the way to get it.

    python3 scripts/setup.py lab                                  a learner's environment
    python3 scripts/setup.py dev --programs chromium firefox bubblewrap   everything the tests need

The environment is .venv, or the folder that COURSE_VENV names.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import platform
import re
import shutil
import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
VENV = Path(os.environ.get("COURSE_VENV") or ROOT / ".venv")
BIN = VENV / ("Scripts" if os.name == "nt" else "bin")
PYTHON = BIN / ("python.exe" if os.name == "nt" else "python")
SUPPORTED = ((3, 11), (3, 13))
BROWSERS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")


class SetupError(Exception):
    """Something that only the person at the keyboard can mend; the message says how."""


def say(text: str) -> None:
    print(f"setup: {text}", file=sys.stderr, flush=True)


def run(title: str, *command: str | Path, hint: str) -> None:
    """Run one step, showing its own progress; raise SetupError with `hint` when it fails."""
    start = time.monotonic()
    say(f"{title} ...")
    try:
        subprocess.run([str(part) for part in command], check=True, cwd=ROOT)
    except (OSError, subprocess.CalledProcessError) as error:
        raise SetupError(f"{title} failed ({error}). {hint}") from None
    say(f"{title}: done in {time.monotonic() - start:.0f} s")


def supported(version: tuple[int, int]) -> bool:
    return SUPPORTED[0] <= version <= SUPPORTED[1]


def find_python() -> str:
    """The interpreter to build the environment with: this one if it fits, else the newest fitting one on PATH."""
    if supported(sys.version_info[:2]):
        return sys.executable
    for minor in range(SUPPORTED[1][1], SUPPORTED[0][1] - 1, -1):
        candidate = shutil.which(f"python3.{minor}")
        if candidate and subprocess.run([candidate, "-c", ""], capture_output=True).returncode == 0:
            return candidate
    raise SetupError(
        f"Python 3.11, 3.12 or 3.13 is needed; this is {platform.python_version()} and no other was found on PATH. "
        "Get one from python.org, with `apt install python3 python3-venv`, `brew install python@3.13` or "
        "`conda env create -f environment.yml`, then run the command again."
    )


def make_venv() -> None:
    if PYTHON.exists() and subprocess.run([PYTHON, "-c", "import pip"], capture_output=True).returncode == 0:
        return
    run(
        f"making the virtual environment {VENV.name}",
        find_python(), "-m", "venv", "--clear", VENV,
        hint="On Debian and Ubuntu: `apt install python3-venv`.",
    )  # fmt: skip


def fingerprint(extra: str) -> str:
    inputs = [(ROOT / name).read_bytes() for name in ("pyproject.toml", "constraints.txt")]
    return hashlib.sha256(b"\0".join([extra.encode(), str(VENV).encode(), *inputs])).hexdigest()


def has_torch() -> bool:
    """Is the torch of constraints.txt installed, in whatever build?"""
    (wanted,) = re.findall(r"^torch==(\S+)", (ROOT / "constraints.txt").read_text(), re.MULTILINE)
    code = f"import importlib.metadata as m; assert m.version('torch').split('+')[0] == '{wanted}'"
    return subprocess.run([PYTHON, "-c", code], capture_output=True).returncode == 0


def install(extra: str) -> None:
    """Install the project with one extra, at the versions of constraints.txt."""
    stamp = VENV / f".installed-{extra}"
    if stamp.exists() and stamp.read_text() == fingerprint(extra):
        return
    network = "Is the network up? Behind a mirror, configure pip as usual: its settings are honoured."
    pip = (PYTHON, "-m", "pip", "install", "--disable-pip-version-check")
    if not (BIN / "uv").exists() and not (BIN / "uv.exe").exists():
        run("installing uv, a fast installer", *pip, "--quiet", "uv", hint=network)
    if not has_torch():
        # Through pip, since pip's own settings say where a CPU or a CUDA build comes from.
        index = os.environ.get("TORCH_INDEX")
        source = ("--index-url", index) if index else ()
        run(
            "installing torch (the largest download: 0.2 GB for a CPU build, 3 GB with CUDA)",
            *pip, "--constraint", "constraints.txt", *source, "torch", hint=network,
        )  # fmt: skip
    run(
        f"installing the course and its '{extra}' packages",
        PYTHON, "-m", "uv", "pip", "install", "--python", PYTHON, "--constraint", "constraints.txt",
        "--editable", f".[{extra}]", hint=network,
    )  # fmt: skip
    configure_jupyterlab(VENV)
    stamp.write_text(fingerprint(extra))


def configure_jupyterlab(environment: Path) -> None:
    """JupyterLab asks every new user whether to fetch news from another host; the course answers no."""
    settings = environment / "share" / "jupyter" / "lab" / "settings" / "overrides.json"
    settings.parent.mkdir(parents=True, exist_ok=True)
    wanted = {"@jupyterlab/apputils-extension:notification": {"checkForUpdates": False, "fetchNews": "false"}}
    settings.write_text(json.dumps(wanted, indent=2) + "\n")


def add_lab_extension(folder: Path | None = None) -> None:
    """Put the course's JupyterLab extension into `folder`, .venv's by default, as a link to the sources."""
    target = (folder or VENV / "share" / "jupyter") / "labextensions" / "llm-serving-course"
    target.mkdir(parents=True, exist_ok=True)
    shutil.copy(ROOT / "interactives" / "lab" / "package.json", target)
    link = target / "static"
    if link.is_symlink():
        link.unlink()
    elif link.exists():
        shutil.rmtree(link)
    try:
        link.symlink_to(ROOT / "interactives" / "static", target_is_directory=True)
    except OSError:  # Windows lets only some users make links
        shutil.copytree(ROOT / "interactives" / "static", link)


def find_browser() -> str | None:
    """A Chromium that the tests can drive: $CHROMIUM, one on PATH, or the one that Playwright downloaded."""
    named = os.environ.get("CHROMIUM")
    if named:
        return named
    for name in BROWSERS:
        if path := shutil.which(name):
            return path
    code = (
        "from playwright.sync_api import sync_playwright as p\nwith p() as play: print(play.chromium.executable_path)"
    )
    found = subprocess.run([PYTHON, "-c", code], capture_output=True, text=True).stdout.strip()
    return found if found and Path(found).exists() else None


def may_install_debian_packages() -> bool:
    release = Path("/etc/os-release")
    return release.exists() and "ID=debian" in release.read_text().splitlines() and os.geteuid() == 0


def install_debian_package(package: str, advice: str) -> None:
    run("updating the package list", "apt-get", "update", "-qq", hint=advice)
    run(f"installing Debian's {package}", "apt-get", "install", "-y", "-qq", package, hint=advice)


def get_browser() -> None:
    if find_browser():
        return
    advice = (
        "Install Chromium (Debian: `apt install chromium`; elsewhere `.venv/bin/playwright install chromium`) "
        "or set CHROMIUM to the path of one."
    )
    if may_install_debian_packages():
        install_debian_package("chromium", advice)
    else:
        run("downloading Chromium", PYTHON, "-m", "playwright", "install", "chromium", hint=advice)


def get_firefox() -> None:
    if os.environ.get("FIREFOX") or shutil.which("firefox-esr") or shutil.which("firefox"):
        return
    advice = "Install Firefox (Debian: `apt install firefox-esr`), or set FIREFOX to the path of one."
    if not may_install_debian_packages():
        raise SetupError(f"Firefox, the second browser that the site is tested in, is missing. {advice}")
    install_debian_package("firefox-esr", advice)


def get_bubblewrap() -> None:
    if sys.platform != "linux" or shutil.which("bwrap"):
        return
    advice = "Install bubblewrap (Debian and Ubuntu: `apt install bubblewrap`)."
    if not may_install_debian_packages():
        raise SetupError(f"bubblewrap, the grader's sandbox, is missing. {advice}")
    install_debian_package("bubblewrap", advice)


PROGRAMS = {"chromium": get_browser, "firefox": get_firefox, "bubblewrap": get_bubblewrap}


def install_programs(names: list[str]) -> None:
    """Get them where this user may; otherwise say what to install and go on: what needs one says so too."""
    for name in names:
        try:
            PROGRAMS[name]()
        except SetupError as error:
            say(f"{error}\nsetup: going on; what needs {name} will fail, or be skipped, until it is there.")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument(
        "extra",
        choices=("engine", "lab", "book", "site", "hub", "test", "dev", "bench"),
        help="which packages to install",
    )
    parser.add_argument("--programs", nargs="+", choices=PROGRAMS, default=[], help="also get these, where possible")
    arguments = parser.parse_args()
    try:
        make_venv()
        install(arguments.extra)
        if arguments.extra != "engine":
            add_lab_extension()
        install_programs(arguments.programs)
    except SetupError as error:
        print(f"setup: {error}", file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
