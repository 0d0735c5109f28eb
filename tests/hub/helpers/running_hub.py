"""A Hub that runs for the tests, with a course of one small assignment."""

from __future__ import annotations

import json
import shutil
import signal
import socket
import subprocess
import time
from dataclasses import dataclass, field
from pathlib import Path

import httpx
import set_up
import small_course
import start
from hub_client import SECONDS, Person

ROOT = Path(__file__).resolve().parents[3]
ASSIGNMENT = "doubling"
HIDDEN = "### BEGIN HIDDEN TESTS\nassert double(2121) == 4242\n### END HIDDEN TESTS"


@dataclass
class Hub:
    """A running Hub. `folder` is what `set_up` made."""

    folder: Path
    port: int
    process: subprocess.Popen[bytes] | None = None
    people: dict[str, Person] = field(default_factory=dict)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    @property
    def log(self) -> Path:
        return self.folder / "hub" / "hub.log"

    def run(self) -> None:
        """Starts the Hub and waits until it answers."""
        environment = {**start.environment(self.folder, self.port), "JUPYTERHUB_LOG_LEVEL": "WARN"}
        with self.log.open("ab") as log:
            self.process = subprocess.Popen(
                start.command(self.folder), env=environment, cwd=self.folder / "hub", stdout=log, stderr=log
            )
        deadline = time.monotonic() + SECONDS
        while time.monotonic() < deadline:
            try:
                if httpx.get(f"{self.url}/hub/api/", timeout=5).status_code == 200:
                    return
            except httpx.HTTPError:
                pass
            time.sleep(0.3)
        raise TimeoutError(f"the Hub did not start:\n{self.log.read_text()[-4000:]}")

    def kill(self) -> None:
        """Ends the Hub's own process at once, as a crash would; users' servers and the proxy go on."""
        assert self.process is not None
        self.process.send_signal(signal.SIGKILL)
        self.process.wait()

    def person(self, name: str) -> Person:
        """Somebody who is logged in and whose server runs."""
        if name not in self.people:
            passwords = json.loads((self.folder / "hub" / "passwords.json").read_text())
            kind = "instructor" if name == set_up.INSTRUCTOR else "learners"
            self.people[name] = Person(self.url, name, passwords[kind])
            self.people[name].start()
        return self.people[name]

    def home(self, name: str) -> Path:
        return self.folder / "homes" / name

    def as_user(self, name: str, *command: str | Path) -> subprocess.CompletedProcess[str]:
        """Runs a command as that Unix user, in its home: what a learner's terminal in JupyterLab can do."""
        return subprocess.run(
            ["setpriv", f"--reuid={name}", f"--regid={name}", "--clear-groups", "--", *map(str, command)],
            cwd=self.home(name),
            env={"HOME": str(self.home(name)), "PATH": f"{self.folder / 'env' / 'bin'}:/usr/bin:/bin", "USER": name},
            capture_output=True,
            text=True,
        )


def small_course_folder(folder: Path) -> Path:
    """A course with one assignment: a function of 5 points with a hidden test, and a written answer of 4 points."""
    notebook = small_course.answered()
    answer = small_course.cell(notebook, "double")
    answer["source"] = "### BEGIN SOLUTION\ndef double(x):\n    return 2 * x\n### END SOLUTION"
    small_course.cell(notebook, "test-two")["source"] += f"\n{HIDDEN}"
    for cell in notebook["cells"]:
        cell["source"] = cell["source"].replace("# Doubling", "# Doubling, for the Hub")
    path = folder / "source" / ASSIGNMENT / f"{ASSIGNMENT}.ipynb"
    path.parent.mkdir(parents=True)
    path.write_text(json.dumps(notebook))
    shutil.copy(ROOT / "exercises" / "nbgrader_config.py", folder)
    folder.chmod(0o700)
    return folder


def free_ports(n: int) -> int:
    """The first of n ports in a row that nobody uses."""
    for first in range(18_000, 28_000, n):
        try:
            for port in range(first, first + n):
                with socket.socket() as listener:
                    listener.bind(("127.0.0.1", port))
        except OSError:
            continue
        return first
    raise OSError("no free ports")


def end_everything() -> None:
    """Ends every process of the users and of the Hub, and removes the users."""
    for name in (set_up.INSTRUCTOR, *set_up.LEARNERS):
        subprocess.run(["pkill", "-KILL", "-u", name], capture_output=True)
        subprocess.run(["userdel", "--force", name], capture_output=True)
    for pattern in ("jupyterhub -f .*hub/jupyterhub_config.py", "configurable-http-proxy --ip"):
        subprocess.run(["pkill", "-KILL", "-f", pattern], capture_output=True)
