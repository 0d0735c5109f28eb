"""Types the commands of a page as a reader would, in one folder after another, without starting Python anew for each.

`nbgrader` and `python -m autograder` run in processes forked from one that has imported them; they are the same code as
on the command line. Anything else goes to bash.
"""

from __future__ import annotations

import multiprocessing
import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

from autograder.batch import pool


class Shell:
    """A terminal of somebody whose home folder is `home`; `output` is what the last command printed."""

    def __init__(self, home: Path) -> None:
        self.home, self.folder, self.output = home, home, ""
        self._forks = multiprocessing.get_context("forkserver")
        self._forks.set_forkserver_preload([*pool.PRELOAD, "autograder.__main__"])

    def type(self, line: str) -> int:
        """Run one line; returns its exit status."""
        words = [word.replace("~", str(self.home), 1) if word.startswith("~/") else word for word in shlex.split(line)]
        if words[0] == "cd":
            self.folder = (self.folder / words[1]).resolve(strict=True)
            return 0
        path = self.home / "output.txt"
        if words[0] == "nbgrader" or words[:3] == ["python", "-m", "autograder"]:
            process = self._forks.Process(target=_run, args=(words, str(self.folder), str(path)))
            process.start()
            process.join(280)
            status = process.exitcode
            if status is None:
                process.kill()
                raise TimeoutError(line)
        else:
            with path.open("w") as file:
                status = subprocess.run(line, shell=True, cwd=self.folder, stdout=file, stderr=file).returncode
        self.output = path.read_text(encoding="utf-8", errors="replace")
        return status


def _run(words: list[str], folder: str, output: str) -> None:
    file = os.open(output, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
    for number in (1, 2):
        os.dup2(file, number)
    os.chdir(folder)
    os.environ.update(OMP_NUM_THREADS="1", JUPYTER_PATH="")
    sys.argv = list(words)
    if words[0] == "nbgrader":
        from nbgrader.apps import NbGraderApp

        NbGraderApp.launch_instance(argv=words[1:])
        sys.exit(0)
    from autograder.__main__ import main

    sys.exit(main(words[3:]))


def blocks(page: Path) -> list[tuple[str, str, str]]:
    """The fenced blocks of a Markdown page, in order: the heading above, the language, the text."""
    found, heading = [], ""
    pattern = re.compile(r"^## ([^\n]+)$|^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
    for match in pattern.finditer(page.read_text(encoding="utf-8")):
        if match[1]:
            heading = match[1]
        else:
            found.append((heading, match[2], match[3]))
    return found
