"""Node.js for the tests of the browser's code: the one in the virtual environment, and the locked npm packages."""

import fcntl
import subprocess
from functools import cache
from pathlib import Path

from interactives import npm

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / "interactives"
HERE = Path(__file__).parent


@cache
def find_node() -> str:
    return npm.find_tool("node")


@cache
def install_packages() -> None:
    """interactives/node_modules as package-lock.json says; several test processes may ask at once."""
    lock = ROOT / ".pytest_cache" / "npm.lock"
    lock.parent.mkdir(exist_ok=True)
    with lock.open("w") as handle:
        fcntl.flock(handle, fcntl.LOCK_EX)
        npm.install_packages(FOLDER)


def run_node_tests(name: str) -> str:
    """What `node --test tests/interactives/NAME` printed; fails the test with it where one of them failed."""
    install_packages()
    command = [find_node(), "--test", "--test-reporter=spec", str(HERE / name)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stdout[-6000:] + done.stderr[-2000:]
    return done.stdout
