"""The command `probe`: measures this machine's own memory bandwidth and matrix-product rate.

python -m reference_impl probe [--device cuda] [--json]
"""

import dataclasses
import json

from reference_impl.benchmarks.probe import probe
from reference_impl.common import cli


def main(arguments: list[str]) -> None:
    """`python -m reference_impl probe`"""
    parser = cli.parser("probe", "measure this machine's own bandwidth and matrix-product rate")
    parser.add_argument("--device", default="cpu", help="cpu or cuda")
    parser.add_argument(
        "--repeats", type=cli.whole_number, default=9, help="runs of each measurement; the median counts"
    )
    parser.add_argument("--json", action="store_true", help="one JSON object instead of text")
    options = parser.parse_args(arguments)
    found = probe(options.device, repeats=options.repeats)
    if options.json:
        print(json.dumps(dataclasses.asdict(found)))
        return
    print(f"{found.name}, {found.memory_bytes / 1e9:.1f} GB of memory")
    print(f"read bandwidth   {found.bandwidth / 1e9:8.1f} GB/s")
    print(f"matrix products  {found.peak_flops / 1e9:8.1f} GFLOP/s")
    print(f"ridge point      {found.ridge:8.1f} FLOP/byte")
