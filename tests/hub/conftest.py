"""A Hub with a course of one small assignment, for all tests of this folder."""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
import running_hub
import set_up


@pytest.fixture(scope="session")
def hub() -> Iterator[running_hub.Hub]:
    if sys.platform != "linux" or os.geteuid() != 0:
        pytest.skip("a Hub starts each user's server as that user, which only root on Linux can do")
    folder = Path(tempfile.mkdtemp(prefix="serving-hub-"))
    folder.chmod(0o755)
    try:
        set_up.set_up(folder, running_hub.small_course_folder(folder / "taught"), "problem-sets")
        found = running_hub.Hub(folder, running_hub.free_ports(4))
        found.run()
        yield found
    finally:
        running_hub.end_everything()
        shutil.rmtree(folder, ignore_errors=True)
