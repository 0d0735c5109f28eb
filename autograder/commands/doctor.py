"""Proves the sandbox by trying to break it: `python -m autograder doctor`.

The one idea: a limit is believed only when an attempt to pass it has failed (the attempts are in probes.py). What does
not hold is printed with the way to mend it.
"""

from __future__ import annotations

import os
import sys

from autograder.sandbox.launch import SandboxError, check
from autograder.sandbox.probes.escapes import PROBES

ELSEWHERE = """The sandbox needs Linux. Two ways to grade from here:

  a container   docker run -it --privileged -v "$PWD":/course -w /root python:3.13 bash
                and in it: apt-get update && apt-get install -y bubblewrap
                           git clone /course course && cd course && make grade
                (--privileged lets the sandbox make its own namespaces and control groups inside; learners' code gets
                none of it. Give the container nothing but the course.)
  WSL 2         on Windows: `wsl --install -d Debian`, then in its terminal: sudo apt install bubblewrap make
                python3-venv, and the course's own commands, in a clone below your Linux home folder

Learners need none of this: writing and checking answers works everywhere."""


def main() -> int:
    """Print the table; 0 if every limit held, 1 if not."""
    if not sys.platform.startswith("linux"):
        print(f"This is {sys.platform}. {ELSEWHERE}")
        return 1
    try:
        enforced = check()
    except SandboxError as error:
        print(f"FAIL  the sandbox starts\n      {error}\n\nNothing of a learner's is run until this is mended.")
        return 1
    who = "root" if os.geteuid() == 0 else "an ordinary user"
    print(f"Trying to break the sandbox, started by {who}. What holds it:")
    print("".join(f"  - {line}\n" for line in enforced))
    failed = 0
    for probe in PROBES:
        found = probe()
        failed += not found.held
        print(f"{'ok  ' if found.held else 'FAIL'}  {found.name}: {found.what}", flush=True)
        if not found.held and found.mend:
            print(f"      {found.mend}")
    print(f"\n{len(PROBES) - failed} of {len(PROBES)} limits hold.")
    return 1 if failed else 0
