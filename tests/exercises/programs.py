"""The practice exercises as `scripts/fill_practice.py` reads them."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path

SCRIPT = Path(__file__).resolve().parents[2] / "scripts" / "fill_practice.py"

_spec = importlib.util.spec_from_file_location("fill_practice", SCRIPT)
assert _spec is not None
assert _spec.loader is not None
fill_practice = importlib.util.module_from_spec(_spec)
sys.modules["fill_practice"] = fill_practice  # dataclasses look their module up
_spec.loader.exec_module(fill_practice)

Exercise = fill_practice.Exercise
run = fill_practice.run
BY_ID = fill_practice.read_all()
EXERCISES = list(BY_ID.values())
