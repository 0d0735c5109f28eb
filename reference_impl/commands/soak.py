"""The command `soak`: serves a model, loads it for minutes with clients that hang up, and looks for leaks.

    python -m reference_impl soak [--minutes 5]

However the requests ended, nothing may run, wait or hold a block in the end, and every request must have been counted.
Server and load are the ordinary commands, each in its own process, as users run them.
"""

from __future__ import annotations

import subprocess
import sys

from reference_impl.common import cli, extras

SHORT = ["--prompt-words", "8:64", "--max-tokens", "8:64"]  # short enough for two CPU cores


def main(arguments: list[str]) -> int:
    """`python -m reference_impl soak`. Status 1 if something was left over."""
    parser = cli.parser("soak", "Serves a model, loads it with clients that hang up, and looks for what is left over.")
    parser.add_argument("--model", default="smollm2-135m", help="smollm2-135m (default), a GGUF file or a folder")
    parser.add_argument("--minutes", type=cli.number_up_to(1e5), default=5.0, help="(5)")
    parser.add_argument("--requests", type=cli.whole_number, default=200, help="spread over that time (200)")
    parser.add_argument("--cancel-fraction", type=cli.number_up_to(1.0), default=0.3, help="share that hangs up (0.3)")
    parser.add_argument("--kv-blocks", type=cli.whole_number, default=64, help="few, so that they run out (64)")
    parser.add_argument("--seed", type=cli.count, default=0, help="(0)")
    options = parser.parse_args(arguments)
    extras.require("serve", "httpx", "starlette", "uvicorn", "prometheus_client")

    command = [sys.executable, "-m", "reference_impl"]
    limits = ["--kv-blocks", str(options.kv_blocks), "--queue-limit", str(options.requests)]
    rate = options.requests / (60 * options.minutes)
    load = ["--rate", str(rate), "--requests", str(options.requests), "--seed", str(options.seed), *SHORT]
    load += ["--cancel-fraction", str(options.cancel_fraction), "--cancel-within", "10", "--expect-drained"]
    server = subprocess.Popen(
        [*command, "serve", "--model", options.model, "--port", "0", *limits], stderr=subprocess.PIPE, text=True
    )
    try:
        assert server.stderr is not None
        url = None
        for line in server.stderr:
            sys.stderr.write(line)
            if " at http" in line:
                url = line.split(" at ")[1].split()[0]
                break
        if url is None:
            return server.wait()
        status = subprocess.run([*command, "load", "--url", url, *load]).returncode
        server.terminate()
        print(server.stderr.read(), end="", file=sys.stderr)
        return status or server.wait()
    finally:
        server.kill()
        server.wait()
