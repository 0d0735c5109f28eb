"""What all tests share: few threads when tests run side by side."""

from __future__ import annotations

import os

# Under xdist each worker is a process of its own; torch would start a full set of threads in every one.
if "PYTEST_XDIST_WORKER" in os.environ:
    os.environ.setdefault("OMP_NUM_THREADS", "1")
