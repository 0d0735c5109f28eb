"""The site in a second browser engine: Debian's Firefox reads, predicts, answers and runs a program."""

import json
import os
import shutil
import subprocess
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from site_tools import ROOT, n_cases

from interactives.npm import find_tool

pytestmark = [pytest.mark.browser, pytest.mark.slow, pytest.mark.timeout(600)]

FIREFOX = os.environ.get("FIREFOX") or shutil.which("firefox-esr") or shutil.which("firefox")


@pytest.mark.skipif(FIREFOX is None, reason="no Firefox here: `apt-get install firefox-esr`, or set FIREFOX to one")
def test_a_reader_with_firefox_reads_predicts_answers_and_practises(address: str) -> None:
    node = find_tool("node")
    library = ROOT / "book" / "node_modules" / "puppeteer-core" / "lib" / "puppeteer" / "puppeteer-core.js"
    program = ROOT / "exercises" / "practice" / "01_groupwise_int8" / "solution.py"
    done = subprocess.run(
        [node, str(Path(__file__).with_name("firefox.mjs")), library.as_uri(), str(FIREFOX), address, str(program)],
        capture_output=True,
        text=True,
        timeout=500,
    )
    assert done.returncode == 0, done.stderr
    seen = json.loads(done.stdout)
    assert "batch 64" in seen["sentence"]
    assert "6,450 tokens/s" in seen["sentence"]
    assert "Not this" in seen["prediction"]
    assert "of 7 right: " in seen["quiz"]
    assert seen["practice"] == f"All {n_cases('01_groupwise_int8')} cases are right. 30 XP earned."
    assert "30 XP" in seen["progress"]
    assert set(seen["hosts"]) == {urlsplit(address).netloc}
    assert seen["faults"] == []
