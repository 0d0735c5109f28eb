"""Renders a chat template as `transformers` does, because templates are written for its environment.

A template comes with the model, from strangers, so it runs in jinja's sandbox. It sees `messages`, `tools`,
`documents`, `add_generation_prompt` and the special tokens. It may raise an error, ask for today's date, and mark the
assistant's words with `{% generation %}`, which changes nothing in the text.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from datetime import datetime
from typing import NoReturn

from jinja2 import TemplateError, nodes
from jinja2.ext import Extension, loopcontrols
from jinja2.parser import Parser
from jinja2.sandbox import ImmutableSandboxedEnvironment


class _Generation(Extension):
    """`{% generation %} ... {% endgeneration %}`: training reads these marks, serving only the text between them."""

    tags = {"generation"}  # noqa: RUF012 (jinja's own attribute)

    def parse(self, parser: Parser) -> list[nodes.Node]:
        next(parser.stream)
        return parser.parse_statements(("name:endgeneration",), drop_needle=True)


def render(template: str, values: Mapping[str, object], now: Callable[[], datetime] = datetime.now) -> str:
    """The text of a conversation. ValueError with the template's own message if it refuses the conversation.

    `values` are the names that the template may use. `now` tells the time to templates that print the date.
    """

    def refuse(message: str) -> NoReturn:
        raise TemplateError(message)

    environment = ImmutableSandboxedEnvironment(
        trim_blocks=True, lstrip_blocks=True, extensions=[_Generation, loopcontrols]
    )
    environment.filters["tojson"] = _to_json
    environment.globals["raise_exception"] = refuse
    environment.globals["strftime_now"] = lambda form: now().strftime(form)
    try:
        return environment.from_string(template).render(values)
    except (TemplateError, TypeError, OverflowError) as error:
        raise ValueError(f"the model's chat template refuses these messages: {error}") from None


def _to_json(
    value: object,
    ensure_ascii: bool = False,
    indent: int | None = None,
    separators: tuple[str, str] | None = None,
    sort_keys: bool = False,
) -> str:
    """JSON as templates expect it; jinja's own filter escapes characters that HTML treats specially."""
    return json.dumps(value, ensure_ascii=ensure_ascii, indent=indent, separators=separators, sort_keys=sort_keys)
