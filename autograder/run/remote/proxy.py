"""The tests' end of a call: a learner's names as Python objects that work like the originals, but live elsewhere.

A call gives back either a plain value, checked and copied, or a handle on an object that stays in the kernel. A handle
can be called and its attributes read; it is equal to nothing and is no number, so a class with an `__eq__` of its own
decides no test. Arguments are copied for each call, so nothing that the learner's code does to them changes what the
test compares with later; a test that looks for such a change asks for it (`checks.arguments_in_place`). A random
generator is the exception: it goes on where the call left it. A function given as an argument runs here when the
learner's code calls it.
"""

from __future__ import annotations

import builtins
import random
import sys
from collections.abc import Callable, Iterable
from typing import Any

from autograder import checks
from autograder.intake.text import clip
from autograder.run.remote import wire

Exchange = Callable[[str], str]  # request -> answer, or a call of something that we gave
_SHOWN = 80  # bytes of a name or a reason that came from the kernel


class RemoteError(AssertionError):
    """What came back from the learner's code cannot be used; the message is for the learner."""

    def _render_traceback_(self) -> list[str]:
        return ["Check failed", *str(self).splitlines()]


class NoAnswerError(Exception):
    """The learner's kernel did not answer; the text says why."""


class Kernel:
    """The learner's kernel as the tests see it. `exchange` carries the messages."""

    def __init__(self, exchange: Exchange) -> None:
        self._exchange = exchange
        self._handles: dict[int, RemoteObject] = {}
        self._given: dict[int, tuple[Any, frozenset[str]]] = {}
        self._stand_ins: frozenset[int] = frozenset()  # numbers of functions that stand in for the learner's
        self._own_error: Exception | None = None  # raised by a function that a test gave to the learner's code

    def names(self, names: Iterable[str]) -> tuple[dict[str, Any], dict[str, str]]:
        """The learner's values by name; and, for those that cannot be had, why. Unknown names are left out."""
        found, refused = {}, {}
        answer = self._ask({"op": "names", "names": sorted(names)}, "reading your names")
        for name, data in _dict(answer.get("names")).items():
            if type(data) is list and data[:1] == ["refused"]:
                refused[name] = clip(data[-1], _SHOWN)
                continue
            try:
                found[name] = self._decode(data)
            except wire.WireError as error:
                refused[name] = str(error)
        return found, refused

    def replace(self, functions: dict[str, Callable[..., Any]]) -> None:
        """Let these functions of ours stand in for the learner's, by name; with none, the learner's own are put back.

        The learner's other code finds them under these names, and calls them here.
        """
        self._stand_ins = frozenset(map(id, functions.values()))
        given = {name: wire.encode(function, self._refer) for name, function in functions.items()}
        self._ask({"op": "replace", "names": given}, "reading your names")

    def call(self, number: int, what: str, op: str, args: Any = (), kwargs: Any = None, **more: str) -> Any:
        """Do something with an object of the learner's and return the value; exceptions come as built-in ones."""
        kwargs = kwargs or {}
        try:
            given = [wire.encode(arg, self._refer) for arg in args]
            named = {name: wire.encode(arg, self._refer) for name, arg in kwargs.items()}
        except wire.WireError as error:
            raise TypeError(f"an argument of {what} cannot be sent to the learner's code: {error}") from None
        self._own_error = None
        in_place = checks.changes_arguments()
        request = {"op": op, "ref": number, "args": given, "kwargs": named, "in_place": in_place, **more}
        answer = self._ask(request, what)
        try:
            changed = [(args[position], now) for position, now in _list(answer.get("changed", []))]
            changed += [(kwargs[name], now) for name, now in _dict(answer.get("changed_kwargs", {})).items()]
            for old, now in changed:
                if in_place or wire.plain_generator(old):
                    _update(old, self._decode(now))
            if "value" in answer:
                return self._decode(answer["value"])
            raised = self._error(_dict(answer.get("raised")), what)
        except (wire.WireError, IndexError, KeyError, TypeError, ValueError) as error:
            raise RemoteError(f"{what} gave back {error}") from None
        raise raised

    def _ask(self, request: dict[str, Any], what: str) -> dict[str, Any]:
        text = wire.json.dumps(request)
        while True:
            try:
                answer = self._exchange(text)
            except NoAnswerError as error:
                raise NoAnswerError(f"{what}: {error}") from None
            try:
                data = _dict(wire.parse(answer))
            except wire.WireError as error:
                raise RemoteError(f"{what} gave back {error}") from None
            if "given" not in data:
                break
            text = wire.json.dumps(self._serve(data))
        if "refused" in data:
            raise RemoteError(f"{what}: {clip(data['refused'], _SHOWN)}, which cannot be compared with anything")
        return data

    def _serve(self, data: dict[str, Any]) -> dict[str, Any]:
        """The learner's code calls something that it was given."""
        try:
            value, methods = self._given[data["given"]]
            name = data["method"]
            if name not in methods:
                raise AttributeError(name)
            args = [self._decode(item) for item in _list(data["args"])]
            kwargs = {key: self._decode(item) for key, item in _dict(data["kwargs"]).items()}
            result = (getattr(value, name) if name else value)(*args, **kwargs)
            return {"value": wire.encode(result, self._refer)}
        except Exception as error:
            raised = {"raised": next(kind.__name__ for kind in type(error).__mro__ if kind.__module__ == "builtins")}
            if data.get("given") in self._stand_ins:  # an error of the course's function is part of what it does
                return {**raised, "text": str(error)}
            self._own_error = error
            return raised

    def _error(self, raised: dict[str, Any], what: str) -> Exception:
        text, kinds = clip(raised.get("text"), 4000), [str(kind) for kind in _list(raised.get("kinds"))]
        if self._own_error is not None and type(self._own_error).__name__ in kinds:
            return self._own_error
        if (name := clip(raised.get("type"), _SHOWN)) not in kinds[:1]:
            text = f"{name}: {text}"
        for kind in kinds:
            found = getattr(builtins, kind, None)
            if isinstance(found, type) and issubclass(found, Exception):
                try:
                    error = found(text)
                except TypeError:  # a few want more arguments
                    continue
                line = _list(raised.get("line", ["", 0, ""]))
                error.learner = (what, *line) if len(line) == 3 else (what, "", 0, "")  # type: ignore[attr-defined]
                return error
        return RemoteError(f"{what} raised {name}, which ends a program: it is no error that a caller can handle")

    def _decode(self, data: Any) -> Any:
        return wire.decode(data, self._resolve)

    def _resolve(self, data: list[Any]) -> Any:
        if data[0] == "given":
            return self._given[data[1]][0]
        _, number, about = data
        if type(number) is not int:
            raise wire.WireError("a malformed handle")
        if number not in self._handles:
            self._handles[number] = _handle(self, number, _dict(about))
        return self._handles[number]

    def _refer(self, value: Any) -> list[Any]:
        if isinstance(value, RemoteObject):
            kernel, number, _ = object.__getattribute__(value, "_remote")
            if kernel is not self:
                raise wire.WireError("an object that was lost when the kernel ended")
            return ["ref", number]
        kind = type(value)
        numpy = sys.modules.get("numpy")
        generators = (random.Random, *((numpy.random.Generator, numpy.random.RandomState) if numpy else ()))
        if callable(value) and not isinstance(value, type):
            methods: frozenset[str] = frozenset([""])
        elif kind in generators or kind.__module__ == "__main__":
            methods = frozenset(name for name in dir(value) if name[0] != "_" and callable(getattr(value, name)))
        else:
            raise wire.WireError(f"a value of type {kind.__name__}")
        self._given[id(value)] = (value, methods)  # kept alive, so the number stays its own
        return ["given", id(value), sorted(methods - {""}), str(getattr(value, "__name__", kind.__name__))]


class RemoteObject:
    """A handle on an object in the learner's kernel. Its class is made for it, named as the learner's."""

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__") and name.endswith("__"):
            raise AttributeError(name)
        kernel, number, about = object.__getattribute__(self, "_remote")
        return kernel.call(number, f"{about['shown']}.{name}", "get", name=name)

    def __setattr__(self, name: str, value: Any) -> None:
        kernel, number, about = object.__getattribute__(self, "_remote")
        kernel.call(number, f"{about['shown']}.{name}", "set", (value,), name=name)

    def __repr__(self) -> str:
        about = object.__getattribute__(self, "_remote")[2]
        kind = "class" if about["class"] else "function" if about["name"] else "object of type"
        return f"<{kind} {about['shown']}>"

    def __bool__(self) -> bool:
        if object.__getattribute__(self, "_remote")[2]["name"]:
            return True
        raise _no_value(self)

    def __eq__(self, other: object) -> bool:
        if other is self:
            return True
        raise _no_value(self)

    __hash__ = object.__hash__

    def __reduce_ex__(self, protocol: Any) -> Any:
        raise _no_value(self)


def _no_value(handle: RemoteObject) -> RemoteError:
    about = object.__getattribute__(handle, "_remote")[2]
    return RemoteError(
        f"an object of type {about['type']} is no plain value that a test can compare: "
        "return numbers, text, lists, tuples, dictionaries, arrays or tensors"
    )


def _refuse(self: RemoteObject, *others: Any) -> Any:
    raise _no_value(self)


for _name in ("ne", "lt", "le", "gt", "ge", "add", "radd", "sub", "rsub", "mul", "rmul", "truediv", "rtruediv"):
    setattr(RemoteObject, f"__{_name}__", _refuse)


def _special(name: str) -> Callable[..., Any]:
    def method(self: RemoteObject, *args: Any, **kwargs: Any) -> Any:
        kernel, number, about = object.__getattribute__(self, "_remote")
        if name == "__call__":
            return kernel.call(number, about["shown"], "call", args, kwargs)
        return kernel.call(number, f"{name} of {about['shown']}", "special", args, name=name)

    return method


_SPECIALS = {
    name: _special(name)
    for name in ("__call__", "__len__", "__getitem__", "__setitem__", "__contains__", "__iter__", "__next__")
}


def _instance_check(self: RemoteObject, value: Any) -> bool:
    number = object.__getattribute__(self, "_remote")[1]
    return isinstance(value, RemoteObject) and number in object.__getattribute__(value, "_remote")[2]["bases"]


def _handle(kernel: Kernel, number: int, told: dict[str, Any]) -> RemoteObject:
    kind, name = clip(told.get("type"), _SHOWN) or "object", clip(told.get("name"), _SHOWN)
    about = {
        "type": kind,
        "name": name,
        "shown": name or kind,
        "class": told.get("class") is True,
        "bases": [base for base in _list(told.get("bases", [])) if type(base) is int],
    }
    members = {name: _SPECIALS[name] for name in _list(told.get("specials", [])) if name in _SPECIALS}
    if about["class"]:
        members["__instancecheck__"] = _instance_check
    handle = type(kind, (RemoteObject,), members)()
    object.__setattr__(handle, "_remote", (kernel, number, about))
    object.__setattr__(handle, "__name__", about["shown"])
    return handle


def _update(old: Any, new: Any) -> None:
    """Change `old` in place into `new`, keeping the identity of what it holds as far as the structure is the same."""
    numpy, torch = sys.modules.get("numpy"), sys.modules.get("torch")
    if type(old) is not type(new):
        raise wire.WireError(f"a {type(new).__name__} in place of a {type(old).__name__}")
    if isinstance(old, (list, tuple)):
        for i in range(min(len(old), len(new))):
            if not _updated(old[i], new[i]) and isinstance(old, list):
                old[i] = new[i]
        if isinstance(old, list):
            old[len(new) :] = new[len(old) :]
    elif isinstance(old, dict):
        kept = {key: old[key] for key in new if key in old and _updated(old[key], new[key])}
        old.clear()
        old.update({**new, **kept})
    elif isinstance(old, set):
        old.intersection_update(new)
        old.update(new)
    elif isinstance(old, bytearray):
        old[:] = new
    elif numpy is not None and isinstance(old, numpy.ndarray):
        if old.shape != new.shape or old.dtype != new.dtype:
            raise wire.WireError("an array of another shape or type in place of an argument")
        old[...] = new
    elif torch is not None and isinstance(old, torch.Tensor):
        with torch.no_grad():
            old.copy_(new)
    elif wire.plain_generator(old):
        state = wire.generator_state(new)
        if not wire.advanced(wire.generator_state(old), state):
            raise wire.WireError("a random generator in a state that drawing numbers does not lead to")
        wire.set_generator_state(old, state)


def _updated(old: Any, new: Any) -> bool:
    """Update a part in place, if that is possible."""
    mutable = type(old) in (list, tuple, dict, set, bytearray) or (hasattr(old, "shape") and type(old) is type(new))
    if not mutable or type(old) is not type(new) or getattr(old, "shape", None) != getattr(new, "shape", None):
        return False
    if not hasattr(old, "__len__") or (isinstance(old, tuple) and len(old) != len(new)):
        return False
    _update(old, new)
    return True


def _dict(value: Any) -> dict[str, Any]:
    if type(value) is not dict:
        raise wire.WireError("a malformed answer")
    return value


def _list(value: Any) -> list[Any]:
    if type(value) is not list:
        raise wire.WireError("a malformed answer")
    return value
