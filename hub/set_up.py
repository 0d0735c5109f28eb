"""Prepares a Hub for a class on one machine: environment, users, course, exchange. Root runs it, as often as needed.

    python hub/set_up.py --folder /srv/serving-course

Everything lies in one folder: the shared environment, made from the learner's distribution; the users' homes, which
nobody else may enter; the exchange, with the mode of /tmp; the model cache, which everybody reads; the Hub's own files,
which root alone reads. The instructor's home gets a copy of the course, with solutions and hidden tests.
"""

from __future__ import annotations

import argparse
import json
import os
import pwd
import re
import secrets
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT), str(ROOT / "scripts")]

import learner_dist  # noqa: E402

from interactives import npm  # noqa: E402

INSTRUCTOR = "serving-instructor"
LEARNERS = ("serving-ada", "serving-ben", "serving-cleo")
COURSE_ID = "llm-serving"
_TOOLS = {f"@jupyter/nbgrader:{name}": True for name in ("formgrader", "create-assignment", "course-list")}
_SERVERS = {f"nbgrader.server_extensions.{name}": False for name in ("formgrader", "course_list")}


class SetUpError(Exception):
    """What is missing on this machine, and how to get it."""


def set_up(folder: Path, course: Path = ROOT / "exercises", extra: str = "lab") -> None:
    """Makes or completes the Hub's folder. SetUpError if this machine or user cannot."""
    require_root()
    python = shared_python()
    npm.install_packages(ROOT / "hub")
    for name, mode in (("", 0o755), ("homes", 0o755), ("models", 0o755), ("hub", 0o700), ("exchange", 0o1777)):
        (folder / name).mkdir(parents=True, exist_ok=True)
        (folder / name).chmod(mode)
    make_environment(folder / "env", python, extra)
    configure(folder)
    for name in (INSTRUCTOR, *LEARNERS):
        make_user(name, folder / "homes" / name)
    give_course(folder, course)
    keep_passwords(folder / "hub" / "passwords.json")


def require_root() -> None:
    if sys.platform != "linux" or os.geteuid() != 0:
        raise SetUpError("a Hub starts a process for each user as that user: run this as root, on Linux")


def shared_python() -> str:
    """A Python that every user may run: one below a home that others may not enter is of no use here."""
    for name in (getattr(sys, "_base_executable", sys.executable), "/usr/bin/python3", "/usr/local/bin/python3"):
        path = Path(name).resolve()
        if path.is_file() and all(parent.stat().st_mode & 0o001 for parent in path.parents):
            version = subprocess.run(
                [path, "-c", "import sys; print(*sys.version_info[:2])"], capture_output=True, text=True
            )
            if (3, 11) <= tuple(map(int, version.stdout.split())) <= (3, 13):
                return str(path)
    raise SetUpError(
        "no Python 3.11 to 3.13 that every user may run: this one lies below a folder that others may not enter. "
        "Install the system's own (Debian: `apt install python3`)"
    )


def make_environment(target: Path, python: str, extra: str) -> None:
    """The environment that all users share, with the course's wheel and the Hub itself."""
    uv = str(Path(sys.executable).with_name("uv"))
    if not (target / "bin" / "python").exists():
        subprocess.run([uv, "venv", "--quiet", "--python", python, str(target)], check=True)
    packed = ROOT / "dist" / "hub"
    packed.mkdir(parents=True, exist_ok=True)
    wheel = learner_dist.build_wheel(packed)
    # Compiled now, since the users may not write there: otherwise each server's start would compile everything again.
    install = [uv, "pip", "install", "--quiet", "--python", str(target / "bin" / "python"), "--compile-bytecode"]
    versions = ["--constraint", str(ROOT / "constraints.txt"), "--reinstall-package", "llm-serving-course"]
    course = f"llm-serving-course[{extra}] @ {wheel.as_uri()}"
    subprocess.run([*install, "--link-mode=copy", *versions, course, "jupyterhub"], check=True)
    shutil.rmtree(packed)


def configure(folder: Path) -> None:
    """What holds for everybody: where the exchange is, and no instructor's tool in the menus."""
    jupyter = folder / "env" / "etc" / "jupyter"
    show_tools(jupyter, _TOOLS, _SERVERS)
    (jupyter / "nbgrader_config.py").write_text(
        f'c = get_config()\nc.Exchange.root = "{folder / "exchange"}"\nc.CourseDirectory.course_id = "{COURSE_ID}"\n'
    )


def make_user(name: str, home: Path) -> None:
    """A Unix user whose home nobody else may enter."""
    try:
        known = pwd.getpwnam(name)
    except KeyError:
        subprocess.run(["useradd", "--home-dir", str(home), "--shell", "/bin/bash", "--user-group", name], check=True)
    else:
        if known.pw_dir != str(home):
            raise SetUpError(
                f"there is a user {name} already, whose home is {known.pw_dir}: remove it with `userdel {name}`"
            )
    home.mkdir(exist_ok=True)
    home.chmod(0o700)
    shutil.chown(home, name, name)


def give_course(folder: Path, course: Path) -> None:
    """The instructor's copy of the course, its exchange outside, and the tools that learners do not get.

    Given once: later the home is the instructor's own, where root must not write or follow a link.
    """
    home = folder / "homes" / INSTRUCTOR
    target, own = home / "course", home / ".jupyter"
    if target.exists():
        return
    target.mkdir(mode=0o700)
    for name in ("source", "hints", "bank"):
        if (course / name).is_dir():
            shutil.copytree(course / name, target / name)
    config = (course / "nbgrader_config.py").read_text()
    config = re.sub(r"^c\.Exchange\.root = .*$", f'c.Exchange.root = "{folder / "exchange"}"', config, flags=re.M)
    (target / "nbgrader_config.py").write_text(config)
    show_tools(own, dict.fromkeys(_TOOLS, False), dict.fromkeys(_SERVERS, True))
    (own / "nbgrader_config.py").write_text(f'c = get_config()\nc.CourseDirectory.root = "{target}"\n')
    for path in (*target.rglob("*"), target, *own.rglob("*"), own):
        shutil.chown(path, INSTRUCTOR, INSTRUCTOR)


def show_tools(jupyter: Path, disabled: dict[str, bool], servers: dict[str, bool]) -> None:
    """Which extensions JupyterLab leaves out, and which of its server's extensions run, where `jupyter` is read."""
    (jupyter / "labconfig").mkdir(parents=True, exist_ok=True)
    (jupyter / "labconfig" / "page_config.json").write_text(json.dumps({"disabledExtensions": disabled}, indent=1))
    server = {"ServerApp": {"jpserver_extensions": servers}}
    (jupyter / "jupyter_server_config.json").write_text(json.dumps(server, indent=1))


def keep_passwords(path: Path) -> None:
    """One password for learners, a longer one for the instructor, and the word between Hub and proxy.

    They are drawn once, so that a Hub that was started again still gets on with its proxy. Root alone may read them.
    """
    if not path.exists():
        path.touch(mode=0o600)
        lengths = {"learners": 9, "instructor": 30, "proxy": 32}
        path.write_text(json.dumps({name: secrets.token_urlsafe(n_bytes) for name, n_bytes in lengths.items()}))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--folder", type=Path, default=Path("/srv/serving-course"), help="(/srv/serving-course)")
    parser.add_argument("--course", type=Path, default=ROOT / "exercises", help="the course to teach (exercises)")
    parser.add_argument("--extra", choices=["lab", "problem-sets"], default="lab", help="what learners get (lab)")
    options = parser.parse_args()
    try:
        set_up(options.folder.resolve(), options.course, options.extra)
    except (SetUpError, npm.NpmError) as error:
        print(f"hub: {error}", file=sys.stderr)
        return 2
    except subprocess.CalledProcessError as error:
        print(f"hub: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
