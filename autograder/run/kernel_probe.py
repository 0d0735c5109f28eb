"""Tries whether a notebook's kernel starts in a sandbox, as nbgrader starts it."""

from __future__ import annotations

import tempfile
import time
from pathlib import Path

from autograder.sandbox.probes.attempt import Finding


def kernel_starts() -> Finding:
    """Start one through Jupyter and run a cell."""
    from jupyter_client.manager import KernelManager

    from autograder.course import kernelspec

    with tempfile.TemporaryDirectory() as folder:
        manager = KernelManager(kernel_name=kernelspec.ensure(Path(folder)))
        begin = time.monotonic()
        try:
            manager.start_kernel(cwd=folder)
            client = manager.blocking_client()
            client.start_channels()
            client.wait_for_ready(timeout=60)
            said = client.execute("x = 1", reply=True, timeout=30)["content"]["status"]
            client.stop_channels()
            return Finding("a notebook's kernel starts", said == "ok", f"ready in {time.monotonic() - begin:.1f} s")
        except Exception as error:
            mend = "Install the course again (`make lab`): Jupyter finds the sandbox by the package's entry point"
            return Finding("a notebook's kernel starts", False, f"{type(error).__name__}: {error}", mend)
        finally:
            if manager.has_kernel:
                manager.shutdown_kernel(now=True)
