"""The kernel's end of a test's call: finds the learner's names, calls them, and answers with plain values.

This file is never imported: its text is sent into the learner's kernel and becomes a module under a random name, beside
`wire`. It holds nothing that the tests know, and nobody trusts what it answers: a learner who changes it changes only
their own results.
"""

import builtins
import io
import linecache
import socket
import sys
from typing import Any

from autograder.run.remote import wire  # this line is left out when the text is sent

SPECIALS = ("__call__", "__len__", "__getitem__", "__setitem__", "__contains__", "__iter__", "__next__")
MESSAGE = 4000  # bytes of an exception's text

PRINTED = 16_000  # bytes of what was printed between two messages

_objects: dict[int, tuple[Any, dict[str, Any]]] = {}  # number -> (object, what the other side was told of it)
_numbers: dict[int, int] = {}  # id of an object -> number
_names: dict[str, Any] = {}  # the learner's
_replaced: dict[str, list[Any]] = {}  # name -> the learner's own value, if there is one, while another stands in
_exchange: Any = None  # sends a message and returns the one that comes back
_first = 0  # numbers start here


def install(names: dict[str, Any], exchange: Any, first: int = 0) -> None:
    """Start to answer. `first` is larger in each new kernel, so that no number means two objects."""
    global _names, _exchange, _first
    _names, _exchange, _first = names, exchange, first


def listening(path: str) -> socket.socket:
    """A socket for `attend`, where none was handed over."""
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(path)
    listener.listen(16)
    return listener


def attend(listener: socket.socket, token: str, names: dict[str, Any], first: int) -> None:
    """Answer the tests, which call with this token, until they hang up. What is printed meanwhile goes to them too."""
    with _caller(listener, token) as end:
        line, said = _Line(end), _Said()

        def exchange(text: str) -> str:
            line.send(said.take())
            line.send(text)
            return line.receive()

        install(names, exchange, first)
        try:
            while True:
                text = line.receive()
                out, err = sys.stdout, sys.stderr
                sys.stdout = sys.stderr = said
                try:
                    answer = serve(text)
                finally:
                    sys.stdout, sys.stderr = out, err
                line.send(said.take())
                line.send(answer)
        except (EOFError, OSError):
            pass  # they have hung up
        finally:
            _put_back()


def _caller(listener: socket.socket, token: str) -> socket.socket:
    """The tests' call; one that they gave up earlier has another token."""
    while True:
        end, _ = listener.accept()
        try:
            if _Line(end).read(len(token)).decode() == token:
                end.sendall(b"k")
                return end
        except (EOFError, OSError):
            pass
        end.close()


class _Line:
    """Texts over a socket, each with its length in bytes before it (eight bytes)."""

    def __init__(self, end: socket.socket) -> None:
        self._end = end

    def send(self, text: str) -> None:
        data = text.encode()
        self._end.sendall(len(data).to_bytes(8, "big") + data)

    def receive(self) -> str:
        return self.read(int.from_bytes(self.read(8), "big")).decode()

    def read(self, size: int) -> bytes:
        parts = bytearray()
        while len(parts) < size:
            block = self._end.recv(min(size - len(parts), 2**20))
            if not block:
                raise EOFError
            parts += block
        return bytes(parts)


class _Said(io.TextIOBase):
    """What is printed during a call, bounded."""

    encoding = "utf-8"

    def __init__(self) -> None:
        self._parts: list[str] = []
        self._left = PRINTED

    def writable(self) -> bool:
        return True

    def write(self, text: str) -> int:
        if self._left > 0 and text:
            data = text.encode("utf-8", "replace")[: self._left]
            self._left -= len(data)
            self._parts.append(data.decode("utf-8", "ignore"))
        return len(text)

    def take(self) -> str:
        text = "".join(self._parts)
        self._parts, self._left = [], PRINTED
        return text


def serve(text: str) -> str:
    """Answer one request, JSON text to JSON text."""
    try:
        answer = _answer(wire.parse(text))
    except wire.WireError as error:
        answer = {"refused": str(error)}
    try:
        return wire.json.dumps(answer, allow_nan=False)
    except RecursionError:
        return '{"refused": "a value that is nested too deeply"}'


def _answer(request: dict[str, Any]) -> dict[str, Any]:
    if request["op"] == "replace":
        _put_back()
        for name, data in request["names"].items():
            _replaced[name] = [_names[name]] if name in _names else []
            _names[name] = wire.decode(data, _resolve)
        return {"value": wire.encode(None, _refer)}
    if request["op"] == "names":
        return {"names": {name: _named(_names[name]) for name in request["names"] if name in _names}}
    target = _own(request["ref"])
    given = request.get("args", [])
    named = request.get("kwargs", {})
    args = [wire.decode(data, _resolve) for data in given]
    kwargs = {name: wire.decode(data, _resolve) for name, data in named.items()}
    try:
        if request["op"] == "call":
            value = target(*args, **kwargs)
        elif request["op"] == "special":
            value = getattr(type(target), request["name"])(target, *args)
        elif request["op"] == "get":
            value = getattr(target, request["name"])
        else:
            value = None
            setattr(target, request["name"], *args)
    except BaseException as error:
        answer: dict[str, Any] = {"raised": _describe(error)}
    else:
        try:
            answer = {"value": wire.encode(value, _refer)}
        except wire.WireError as error:
            return {"refused": "it returned " + str(error)}
        except Exception as error:
            return {"refused": f"it returned a {type(value).__name__} that cannot be read ({type(error).__name__})"}
    told = ("l", "t", "s", "d", "a", "T", "Y", "g") if request["in_place"] else ("g",)
    try:
        answer["changed"] = [[i, now] for i, was in enumerate(given) if (now := _now(args[i], was, told)) is not None]
        changed = {name: _now(kwargs[name], was, told) for name, was in named.items()}
        answer["changed_kwargs"] = {name: now for name, now in changed.items() if now is not None}
    except wire.WireError as error:
        return {"refused": "it put into one of its arguments " + str(error)}
    return answer


def _put_back() -> None:
    """Give the learner's names their own values again."""
    for name, own in _replaced.items():
        if own:
            _names[name] = own[0]
        else:
            _names.pop(name, None)
    _replaced.clear()


def _now(value: Any, was: Any, told: tuple[str, ...]) -> Any:
    """The argument as it is now, if it has changed and is of a kind of which the other side is told."""
    if type(was) is not list or was[0] not in told:
        return None
    now = wire.encode(value, _refer)
    return now if now != was else None


def _named(value: Any) -> Any:
    try:
        return wire.encode(value, _refer)
    except wire.WireError as error:
        return ["refused", str(error)]


def _refer(value: Any) -> list[Any]:
    """A number for an object that stays here, and what the other side needs to know of it."""
    if isinstance(value, _Given):
        return ["given", object.__getattribute__(value, "_number")]
    number = _numbers.get(id(value))
    if number is None:
        number = _first + len(_objects)
        _numbers[id(value)] = number
        kind = type(value)
        about = {
            "type": kind.__name__,
            "name": _name(value),
            "class": isinstance(value, type),
            "specials": [name for name in SPECIALS if hasattr(kind, name)],
            "bases": [],
        }
        _objects[number] = (value, about)
        if kind.__module__ == "__main__":
            about["bases"] = [_refer(base)[1] for base in kind.__mro__ if base.__module__ == "__main__"]
    return ["ref", number, _objects[number][1]]


def _name(value: Any) -> str:
    try:
        return str(getattr(value, "__name__", ""))
    except Exception:  # a class may answer for any attribute, and fail
        return ""


def _resolve(data: list[Any]) -> Any:
    """What the other side's hook wrote: one of our own objects, or one that it gives us."""
    if data[0] == "ref":
        return _own(data[1])
    return _Given(*data[1:]) if data[2] else _given_function(*data[1:])


def _own(number: int) -> Any:
    if number not in _objects:
        raise wire.WireError("an object that was lost when its kernel ended")
    return _objects[number][0]


class _Given:
    """Stands for an object of the test's: methods are called over there."""

    def __init__(self, number: int, methods: Any, name: str) -> None:
        object.__setattr__(self, "_number", number)
        object.__setattr__(self, "_name", name)
        for method in methods:
            object.__setattr__(self, method, _method(number, method))

    def __repr__(self) -> str:
        return f"<{object.__getattribute__(self, '_name')} given by the test>"


class _GivenFunction(_Given):
    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return _ask(object.__getattribute__(self, "_number"), "", args, kwargs)


def _given_function(number: int, methods: Any, name: str) -> Any:
    function = _GivenFunction(number, (), name)
    object.__setattr__(function, "__name__", name)
    return function


def _method(number: int, method: str) -> Any:
    return lambda *args, **kwargs: _ask(number, method, args, kwargs)


def _ask(number: int, method: str, args: Any, kwargs: Any) -> Any:
    """Have the test call what it gave us. While it does, it may call us."""
    message = {
        "given": number,
        "method": method,
        "args": [wire.encode(arg, _refer) for arg in args],
        "kwargs": {name: wire.encode(arg, _refer) for name, arg in kwargs.items()},
    }
    text = wire.json.dumps(message, allow_nan=False)
    while True:
        reply = wire.parse(_exchange(text))
        if "op" not in reply:
            break
        text = serve(wire.json.dumps(reply))
    if "raised" in reply:
        kind = getattr(builtins, reply["raised"], RuntimeError)
        raise kind(reply.get("text", f"raised by {method or 'a function'}, which the test gave to your code"))
    return wire.decode(reply["value"], _resolve)


def _describe(error: BaseException) -> dict[str, Any]:
    """An exception: its class, the built-in classes it descends from, its text, and the learner's line at fault."""
    try:
        text = error.args[0] if type(error) is KeyError and type(error.args[0]) is str else str(error)
        text = text.encode("utf-8", "replace")[:MESSAGE].decode("utf-8", "ignore")
    except BaseException:
        text = ""
    line = ["", 0, ""]
    trace = error.__traceback__
    while trace is not None:
        code = trace.tb_frame.f_code
        if "ipykernel_" in code.co_filename:
            source = linecache.getline(code.co_filename, trace.tb_lineno).strip()
            line = [code.co_name[:80], trace.tb_lineno, source[:200]]
        trace = trace.tb_next
    kinds = [kind.__name__ for kind in type(error).__mro__ if kind.__module__ == "builtins"]
    return {"type": type(error).__name__[:80], "kinds": kinds, "text": text, "line": line}
