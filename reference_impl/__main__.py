"""`python -m reference_impl COMMAND`: looks the command up and imports only what it needs.

To add a command, add a line to COMMANDS: a function `main(argv) -> int | None` that parses its own arguments
(`cli.parser`) and raises ValueError for bad input.
"""

import sys
from importlib import import_module

from reference_impl.common import cli

COMMANDS: dict[str, tuple[str, str]] = {  # name: ("module:function", one line for --help)
    "bound": ("reference_impl.commands.bound:main", "what a model on a GPU can reach at best, by arithmetic"),
    "fetch-model": ("reference_impl.checkpoints.fetch:main", "download the course's model and prepare it"),
    "generate": ("reference_impl.engine.generate:main", "text from a real model, streaming"),
    "load": ("reference_impl.commands.load:main", "send load to any OpenAI-compatible server and measure it"),
    "probe": ("reference_impl.benchmarks.probe:main", "measure this machine's own bandwidth and matrix-product rate"),
    "quantize": ("reference_impl.commands.quantize:main", "exercise: group-wise int8 quantization of standard input"),
    "quantize-model": (
        "reference_impl.commands.quantize_model:main",
        "write a model with int8 or int4 matrices as a folder to load",
    ),
    "quantization-table": (
        "reference_impl.commands.quantization_table:main",
        "formats and methods for fewer bits under one evaluation: bytes, quality, speed",
    ),
    "serve": ("reference_impl.commands.serve:main", "serve a model over HTTP with the interface of the OpenAI API"),
    "soak": (
        "reference_impl.commands.soak:main",
        "load a server for minutes with clients that hang up, and look for leaks",
    ),
    "speculation-table": (
        "reference_impl.benchmarks.speculation.table:main",
        "what drafts bring, by kind of text: acceptance, tokens a pass, speed-up",
    ),
    "speculate": ("reference_impl.decoding.greedy:main", "exercise: greedy speculative rounds of standard input"),
    "train-pair": ("reference_impl.training.pair:main", "train the course's own target and draft from scratch"),
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
    module, function = COMMANDS[arguments[0]][0].split(":")
    return cli.run(arguments[0], getattr(import_module(module), function), arguments[1:])


if __name__ == "__main__":
    sys.exit(main())
