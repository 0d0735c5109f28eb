"""Runs a program contained: `python -m autograder.sandbox -- PROGRAM ...`."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from autograder.sandbox.contents import Job
from autograder.sandbox.launch import SandboxError, start
from autograder.sandbox.limits import Limits


def main(words: list[str] | None = None) -> int:
    """Run the program and pass its output on; the exit status is the program's, 125 where no sandbox works."""
    usual = Limits()
    parser = argparse.ArgumentParser(prog="python -m autograder.sandbox", description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--files", type=Path, help="folder whose plain files are copied into the working folder")
    parser.add_argument("--memory", type=int, default=usual.memory, metavar="BYTES")
    parser.add_argument("--processes", type=int, default=usual.processes)
    parser.add_argument("--cpu-seconds", type=int, default=usual.cpu_seconds)
    parser.add_argument("--wall-seconds", type=int, default=usual.wall_seconds)
    parser.add_argument("program", nargs="+", help="a program of the system or of this Python, and its arguments")
    options = parser.parse_args(words)
    limits = Limits(
        memory=options.memory,
        processes=options.processes,
        cpu_seconds=options.cpu_seconds,
        wall_seconds=options.wall_seconds,
    )
    try:
        sandbox = start(Job(options.program, limits, options.files, allow=()), stdout=sys.stdout.fileno())
    except SandboxError as error:
        print(f"sandbox: {error}", file=sys.stderr)
        return 125
    try:
        code = sandbox.process.wait()
    finally:
        sandbox.stop()
    print(sandbox.words(), file=sys.stderr, end="")
    if code and (reason := sandbox.reason()):
        print(f"sandbox: {reason}", file=sys.stderr)
    return code if code >= 0 else 128 - code


if __name__ == "__main__":
    sys.exit(main())
