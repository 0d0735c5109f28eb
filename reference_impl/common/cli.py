"""Helpers for the commands of `python -m reference_impl`: bad input ends in one line on standard error and status 2.

A command is a function `main(arguments) -> int | None`. It raises ValueError with a one-line message that says what is
wrong and where, and `run` turns the error into the exit status. Standard library only.
"""

import argparse
import os
import sys
from collections.abc import Callable
from typing import NoReturn

PROGRAM = "python -m reference_impl"


class Parser(argparse.ArgumentParser):
    """An argparse parser whose errors are one line, without the usage text."""

    def error(self, message: str) -> NoReturn:
        self.exit(2, f"{self.prog}: error: {one_line(message)}\n")


def parser(command: str, description: str) -> Parser:
    """A parser for `python -m reference_impl COMMAND`."""
    return Parser(prog=f"{PROGRAM} {command}", description=description, allow_abbrev=False)


def whole_number(text: str) -> int:
    """An argparse type: an integer from 1 to 10^12."""
    try:
        value = int(text)
    except ValueError:
        value = 0
    if not 1 <= value <= 10**12:
        raise argparse.ArgumentTypeError(f"expected a whole number from 1 to 10^12, got {shown(text)}")
    return value


def count(text: str) -> int:
    """An argparse type: an integer from 0 to 10^12."""
    if text.isascii() and text.isdigit() and len(text) <= 13 and int(text) <= 10**12:
        return int(text)
    raise argparse.ArgumentTypeError(f"expected a whole number from 0 to 10^12, got {shown(text)}")


def number_up_to(largest: float) -> Callable[[str], float]:
    """An argparse type: a number above 0 and at most `largest`."""

    def parse(text: str) -> float:
        try:
            value = float(text)
        except ValueError:
            value = 0.0
        if not 0 < value <= largest:
            raise argparse.ArgumentTypeError(f"expected a number above 0 and at most {largest:g}, got {shown(text)}")
        return value

    return parse


def secret(variable: str, option: str) -> str:
    """The value of an environment variable, for what must not show in a list of processes. ValueError without one."""
    value = os.environ.get(variable)
    if not value:
        raise ValueError(f"{option} {variable}: the environment has no such variable")
    return value


def read_input() -> str:
    """All of standard input as UTF-8 text, without a byte-order mark. ValueError where it is closed or not UTF-8."""
    if sys.stdin is None or sys.stdin.closed:
        raise ValueError("no input: standard input is closed")
    try:
        data = sys.stdin.buffer.read()
    except OSError as error:
        raise ValueError(f"standard input cannot be read: {error.strerror}") from None
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise ValueError(f"line {line}: the input is not UTF-8 text (byte 0x{data[error.start]:02x})") from None


def shown(token: str, most: int = 40) -> str:
    """A token for a message: quoted, unprintable characters escaped, and cut if it is long."""
    return repr(token) if len(token) <= most else f"{token[:most]!r}... ({len(token):,} characters)"


def one_line(message: object) -> str:
    return " ".join(str(message).split())


def run(name: str, command: Callable[[list[str]], int | None], arguments: list[str]) -> int:
    """Runs one command and returns its exit status: 2 if it refused its input or a file cannot be read."""
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(encoding="utf-8", errors="backslashreplace")
    try:
        status = command(arguments) or 0
        if sys.stdout is not None:
            sys.stdout.flush()
        return status
    except BrokenPipeError:
        # The reader has closed the pipe, as `head` does. Python would complain again when it flushes at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except (ValueError, OSError) as error:
        if sys.stderr is not None:  # it is None if it is closed, and `print` would then write to standard output
            print(f"{name}: {one_line(error)}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        return 130
