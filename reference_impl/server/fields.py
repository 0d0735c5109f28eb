"""Reads a JSON body field by field: each has a type and a range, and what is left over is an unknown parameter.

A parameter that is silently ignored gives the caller a wrong answer. So the server refuses by name whatever it cannot
do, unless the value asks for nothing. Errors have the shape of OpenAI's API reference, "Errors".
"""

from __future__ import annotations

import json
import math
import re
from typing import Any


class ApiError(Exception):
    """An error reply. `param` is the parameter at fault, `code` a word for programs."""

    def __init__(
        self,
        message: str,
        param: str | None = None,
        code: str | None = None,
        status: int = 400,
        kind: str = "invalid_request_error",
    ) -> None:
        super().__init__(message)
        self.param = param
        self.code = code
        self.status = status
        self.kind = kind

    def body(self) -> dict[str, Any]:
        return {"error": {"message": str(self), "type": self.kind, "param": self.param, "code": self.code}}


def parse_json(data: bytes) -> dict[str, Any]:
    """A JSON object; ApiError for anything else."""
    try:
        body = json.loads(data)
    except RecursionError:
        raise ApiError("the body is nested too deeply", code="invalid_json") from None
    except ValueError as error:
        raise ApiError(f"the body is not JSON: {error}", code="invalid_json") from None
    if not isinstance(body, dict):
        raise ApiError(f"expected a JSON object, got {_kind(body)}", code="invalid_json")
    return body


class Fields:
    """The fields of one object. Every reader takes its field out; null counts as absent."""

    def __init__(self, body: dict[str, Any]) -> None:
        self._left = dict(body)

    def take(self, name: str) -> Any:
        return self._left.pop(name, None)

    def boolean(self, name: str) -> bool:
        value = self.take(name)
        if value is None:
            return False
        if not isinstance(value, bool):
            raise wrong_type(name, "true or false", value)
        return value

    def integer(self, name: str, default: int | None, least: int, most: int) -> int | None:
        value = self.take(name)
        if value is None:
            return default
        if not isinstance(value, int) or isinstance(value, bool):
            raise wrong_type(name, "an integer", value)
        if not least <= value <= most:
            raise ApiError(f"{name} must be from {least} to {most}, got {value}", name, "invalid_value")
        return value

    def number(self, name: str, default: float, least: float, most: float) -> float:
        value = self.take(name)
        if value is None:
            return default
        if not isinstance(value, int | float) or isinstance(value, bool):
            raise wrong_type(name, "a number", value)
        if not least <= value <= most:  # false for NaN too
            raise ApiError(f"{name} must be from {least:g} to {most:g}, got {value}", name, "invalid_value")
        return float(value)

    def text(self, name: str) -> str | None:
        value = self.take(name)
        if value is not None and not isinstance(value, str):
            raise wrong_type(name, "a string", value)
        return value

    def unsupported(self, name: str, *inert: Any) -> None:
        """A parameter of the API that this server does not have; `inert` are values that ask for nothing."""
        value = self.take(name)
        if value is not None and not any(type(value) is type(same) and value == same for same in inert):
            raise ApiError(f"{name} is not supported by this server", name, "unsupported_parameter")

    def left(self) -> tuple[str, ...]:
        """The names that no reader has taken; only what a header may hold is left of them."""
        names = (name for name, value in self._left.items() if value is not None)
        return tuple(re.sub(r"[^\w.-]", "?", name, flags=re.ASCII)[:100] for name in names)[:20]

    def nothing_left(self) -> None:
        for name in self.left():
            raise ApiError(f"unrecognized parameter: {name}", name, "unknown_parameter")


def valid_text(text: str, param: str) -> str:
    """The text, if it can be written as UTF-8: JSON can escape half of a surrogate pair, which is no character."""
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise ApiError(
            f"{param}: character {error.start} is half of a surrogate pair", param, "invalid_value"
        ) from None
    return text


def wrong_type(param: str, expected: str, value: Any) -> ApiError:
    return ApiError(f"{param} must be {expected}, got {_kind(value)}", param, "invalid_type")


def _kind(value: Any) -> str:
    if value is None:
        return "null"
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    names = {bool: "a boolean", int: "an integer", float: "a number", str: "a string", list: "an array"}
    return names.get(type(value), "an object")
