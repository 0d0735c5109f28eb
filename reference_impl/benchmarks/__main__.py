"""The command `python -m reference_impl.benchmarks`: runs sections, prints the report, leaves JSON and a plot."""

from __future__ import annotations

import argparse
import sys
import time
from importlib import import_module
from pathlib import Path

from reference_impl.benchmarks import GPU_SECTIONS, SECTIONS
from reference_impl.common import cli

RESULTS = Path(__file__).parent / "results"


def main(arguments: list[str]) -> int:
    """Status 1: the GPU check found something wrong. 2: no usable GPU. A missed target is a finding, not a failure."""
    options = _parser().parse_args(arguments)
    if options.show is not None:
        return _show(options.show)
    if options.join is not None:
        return _join(options.join, options.output or RESULTS)
    if options.gpu:
        from reference_impl.benchmarks.gpu import runner

        unknown = [name for name in options.only or () if name not in GPU_SECTIONS]
        if unknown:
            raise ValueError(f"--only {' '.join(unknown)}: not a section of --gpu")
        return runner.main(options.budget, options.only, options.output)
    return _cpu(options)


def _parser() -> argparse.ArgumentParser:
    parser = cli.Parser(prog="python -m reference_impl.benchmarks", description=__doc__, allow_abbrev=False)
    names = tuple(dict.fromkeys(SECTIONS + GPU_SECTIONS))
    parser.add_argument("--only", nargs="+", choices=names, metavar="SECTION", help=f"of {', '.join(SECTIONS)}")
    parser.add_argument("--quick", action="store_true", help="a look: few rounds, nothing to quote")
    parser.add_argument("--output", type=Path, help=f"folder for JSON and plot (default: {RESULTS.name}/ beside this)")
    parser.add_argument("--pause", type=float, default=0.0, help="seconds without work in each round, for others (0)")
    parser.add_argument("--model", help="a Hugging Face folder or GGUF file (default: the course's model)")
    parser.add_argument("--show", type=Path, metavar="FILE", help="print an earlier result")
    parser.add_argument("--join", type=Path, nargs="+", metavar="FILE", help="make one result of several runs of a day")
    parser.add_argument("--gpu", action="store_true", help=f"check and measure a GPU: {', '.join(GPU_SECTIONS)}")
    parser.add_argument("--budget", type=cli.whole_number, default=540, help="seconds for --gpu (540)")
    return parser


def _show(path: Path) -> int:
    from reference_impl.benchmarks.harness import report
    from reference_impl.benchmarks.harness.result import Result

    print(report.text(Result.from_json(path.read_text(), str(path))))
    return 0


def _join(paths: list[Path], folder: Path) -> int:
    from reference_impl.benchmarks.harness.result import Result
    from reference_impl.benchmarks.harness.session import finish, join

    results = [Result.from_json(path.read_text(), str(path)) for path in paths]
    finish(join(results), folder, lambda text: print(text, file=sys.stderr))
    return 0


def _cpu(options: argparse.Namespace) -> int:
    from reference_impl.benchmarks.cpu.setup import Bench
    from reference_impl.benchmarks.harness.session import finish, new_result
    from reference_impl.checkpoints import weights

    wanted = options.only or list(SECTIONS)
    unknown = [name for name in wanted if name not in SECTIONS]
    if unknown:
        raise ValueError(f"--only {' '.join(unknown)}: a section of --gpu")
    result = new_result("cpu", quick=options.quick)
    started = time.perf_counter()

    def say(text: str) -> None:
        print(f"[{time.perf_counter() - started:4.0f} s] {text}", file=sys.stderr, flush=True)

    source = options.model or weights.DEFAULT_MODEL
    encode = weights.load_tokenizer(weights.resolve(source)).encode
    bench = Bench(lambda dtype: weights.load(source, dtype).model, quick=options.quick, say=say, encode=encode)
    bench.pause = options.pause
    if options.model is not None:
        bench.peers = ("transformers",)  # the others read files that only the default model has
    bench.say("loading the model")
    result.settings["model"] = bench.config.name
    folder = options.output or RESULTS
    parts = [*(options.only or ()), *(["quick"] if options.quick else [])]
    for name in wanted:
        result.sections.append(import_module(f"reference_impl.benchmarks.cpu.{name}").run(bench))
        result.write(folder, parts)  # so that an interrupted run leaves what it has
    finish(result, folder, say, parts)
    return 0


if __name__ == "__main__":
    sys.exit(cli.run("benchmarks", main, sys.argv[1:]))
