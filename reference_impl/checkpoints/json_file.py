"""JSON files of a checkpoint, read with errors that name the file."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from reference_impl.common.errors import WeightsError


def read_json(path: Path, missing: dict[str, Any] | None = None) -> dict[str, Any]:
    """A JSON object from a file; WeightsError that names it otherwise. `missing` is the answer without a file."""
    if not path.is_file():
        if missing is None:
            raise WeightsError(f"{path}: no such file; expected a JSON file there")
        return missing
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except ValueError as error:
        raise WeightsError(f"{path}: expected JSON ({error})") from None
    if not isinstance(found, dict):
        raise WeightsError(f"{path}: expected a JSON object, found {type(found).__name__}")
    return found
