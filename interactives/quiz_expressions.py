"""The language of quiz files: expressions over the course's own functions, and texts with {fields} of them.

An expression sees all functions of `bounds.arithmetic` and `bounds.batching`, of the exercise programs
`commands.quantize` and `commands.speculate`, `MODELS`, `GPUS`, `Deployment`, `math`, the values that the question
varies, and what `let` defines. Quiz files are part of the course and trusted as its code is.
"""

import math
import re
import string
from typing import Any

from interactives import richtext

BY_LETTER = re.compile(r"\b(?:options?|answers?|choices?)\s+\(?[A-E]\b|\([a-e]\)", re.IGNORECASE)


class QuizError(ValueError):
    """A quiz file is wrong; the message names the file, the question and the field."""


def text_of(raw: dict, field: str, names: dict[str, Any], where: str) -> list[richtext.Node]:
    text = need(raw, field, str, where)
    if field == "explain" and BY_LETTER.search(text):
        raise QuizError(f"{where}, explain: options are shuffled, so never name them by letter: {text!r}")
    return filled(text, names, f"{where}, {field}")


def filled(text: str, names: dict[str, Any], where: str) -> list[richtext.Node]:
    """The text with its {fields} evaluated and formatted; braces within $maths$ are left alone."""
    parts = re.split(r"(\$[^$\n]+\$)", text)
    try:
        return richtext.parse("".join(part if n % 2 else _fill(part, names) for n, part in enumerate(parts)))
    except Exception as error:
        raise QuizError(f"{where}: {type(error).__name__}: {error}") from error


def _fill(text: str, names: dict[str, Any]) -> str:
    out = []
    for literal, field, spec, _ in string.Formatter().parse(text):
        out.append(literal)
        if field is not None:
            out.append(format(eval(field, {"__builtins__": BUILTINS, **names}), spec or ""))
    return "".join(out)


BUILTINS = {
    function.__name__: function
    for function in (abs, dict, enumerate, float, int, len, list, max, min, next, range, round, sorted, sum, zip, tuple)
}


def evaluate(expression: Any, names: dict[str, Any], where: str) -> Any:
    if isinstance(expression, int | float) and not isinstance(expression, bool):
        return expression
    if not isinstance(expression, str):
        raise QuizError(f"{where}: an expression or a number is needed, got {expression!r}")
    try:
        return eval(expression, {"__builtins__": BUILTINS, **names})
    except Exception as error:
        raise QuizError(f"{where}: {expression!r} raises {type(error).__name__}: {error}") from error


def number(expression: Any, names: dict[str, Any], where: str) -> float:
    value = evaluate(expression, names, where)
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        raise QuizError(f"{where}: a finite number is needed, {expression!r} gives {value!r}")
    return float(value)


def shown(answer: float, spec: Any, where: str) -> str:
    """The answer as it is shown: by `format`, or four significant digits and separators at the thousands."""
    if spec is not None:
        try:
            return format(answer, str(spec))
        except ValueError as error:
            raise QuizError(f"{where}, format: {error}") from error
    if answer == int(answer) and abs(answer) < 1e15:
        return f"{int(answer):,}"
    digits = max(0, 3 - math.floor(math.log10(abs(answer))))
    return f"{answer:,.{digits}f}"


def let(names: dict[str, Any], definitions: Any, where: str) -> dict[str, Any]:
    if not isinstance(definitions, dict):
        raise QuizError(f"{where}: a mapping of names to expressions")
    names = dict(names)
    for name, expression in definitions.items():
        names[name] = evaluate(expression, names, f"{where} {name}")
    return names


def names_of_the_course() -> dict[str, Any]:
    from reference_impl.bounds import arithmetic, batching, config, deployment, hardware
    from reference_impl.commands import quantize as report
    from reference_impl.decoding import greedy

    names: dict[str, Any] = {"math": math}
    for module in (arithmetic, batching, report, greedy):
        public = {key: value for key, value in vars(module).items() if callable(value) and not key.startswith("_")}
        names |= {key: value for key, value in public.items() if getattr(value, "__module__", "") == module.__name__}
    return names | {"MODELS": config.MODELS, "GPUS": hardware.GPUS, "Deployment": deployment.Deployment}


def need(raw: Any, field: str, kind: type, where: str) -> Any:
    if not isinstance(raw, dict) or field not in raw:
        raise QuizError(f"{where}: {field} is missing")
    if not isinstance(raw[field], kind) or (kind is str and not raw[field].strip()):
        raise QuizError(f"{where}: {field} must be a {kind.__name__}, got {raw[field]!r}")
    return raw[field]


def only(raw: Any, fields: set[str], where: str) -> None:
    if not isinstance(raw, dict):
        raise QuizError(f"{where}: a mapping is needed, got {raw!r}")
    if unknown := sorted(set(raw) - fields):
        raise QuizError(f"{where}: unknown {', '.join(map(repr, unknown))}; known: {', '.join(sorted(fields))}")
