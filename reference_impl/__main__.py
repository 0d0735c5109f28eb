"""`python -m reference_impl COMMAND`: looks the command up and imports only its own file of `commands`.

To add a command, add a line to COMMANDS and a file with a function `main(arguments) -> int | None` that parses its own
arguments (`cli.parser`) and raises ValueError for bad input.
"""

import sys
from importlib import import_module

from reference_impl.common import cli

COMMANDS: dict[str, tuple[str, str]] = {  # name: (module in `commands`, one line for --help)
    "bound": ("bound", "what a model on a GPU can reach at best, by arithmetic"),
    "fetch-model": ("fetch_model", "download the course's model and prepare it"),
    "generate": ("generate", "text from a real model, streaming"),
    "load": ("load", "send load to any OpenAI-compatible server and measure it"),
    "probe": ("measure.probe", "measure this machine's own bandwidth and matrix-product rate"),
    "quantize": ("quantize", "exercise: group-wise int8 quantization of standard input"),
    "quantize-model": ("quantize_model", "write a model with int8 or int4 matrices as a folder to load"),
    "quantization-table": (
        "measure.quantization_table",
        "formats and methods for fewer bits under one evaluation: bytes, quality, speed",
    ),
    "serve": ("serve", "serve a model over HTTP with the interface of the OpenAI API"),
    "soak": ("soak", "load a server for minutes with clients that hang up, and look for leaks"),
    "speculation-table": (
        "measure.speculation_table",
        "what drafts bring, by kind of text: acceptance, tokens a pass, speed-up",
    ),
    "speculate": ("speculate", "exercise: greedy speculative rounds of standard input"),
    "train-pair": ("train_pair", "train the course's own target and draft from scratch"),
}


def usage() -> str:
    width = max(map(len, COMMANDS))
    lines = [f"  {name:<{width}}  {help_line}" for name, (_, help_line) in sorted(COMMANDS.items())]
    return "\n".join([f"usage: {cli.PROGRAM} COMMAND [options]   (COMMAND --help lists its options)", "", *lines])


def main(arguments: list[str] | None = None) -> int:
    """Run one command; returns the exit status: 0 good, 2 bad input."""
    arguments = sys.argv[1:] if arguments is None else arguments
    if arguments[:1] in (["-h"], ["--help"]):
        print(usage())
        return 0
    if not arguments or arguments[0] not in COMMANDS:
        problem = f"unknown command {cli.shown(arguments[0])}" if arguments else "no command"
        print(f"{cli.PROGRAM}: {problem}; known: {', '.join(sorted(COMMANDS))}", file=sys.stderr)
        return 2
    command = import_module(f"reference_impl.commands.{COMMANDS[arguments[0]][0]}")
    return cli.run(arguments[0], command.main, arguments[1:])


if __name__ == "__main__":
    sys.exit(main())
