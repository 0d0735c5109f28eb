"""What all tests share: few threads when tests run side by side, and one way to find the browser."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent

# Under xdist each worker is a process of its own; torch would start a full set of threads in every one.
if "PYTEST_XDIST_WORKER" in os.environ:
    os.environ.setdefault("OMP_NUM_THREADS", "1")


@pytest.fixture(scope="session")
def root() -> Path:
    """The repository's root folder."""
    return ROOT
