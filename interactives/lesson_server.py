"""The server of lesson 6: this course's, in a process of its own, for as long as the lesson needs it."""

import atexit
import re
import subprocess
import sys


class ServerBeside:
    """`python -m reference_impl serve` on a free port; it ends with the notebook, or with `stop`.

    `options` are those of the command. Raises RuntimeError, with what the server said, if it does not come to listen.
    """

    def __init__(self, *options: str, cwd: str = "..") -> None:
        command = [sys.executable, "-m", "reference_impl", "serve", "--port", "0", *options]
        self._process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True, cwd=cwd)
        atexit.register(self._process.kill)
        assert self._process.stderr is not None
        said = []
        for line in self._process.stderr:
            said.append(line)
            if found := re.search(r"(http://\S+)/v1", line):
                self.url = found[1]
                return
        raise RuntimeError("the server did not start:\n" + "".join(said))

    def stop(self) -> int:
        """Ask the server to end, wait for it, and return its exit status."""
        self._process.terminate()
        return self._process.wait(timeout=60)
