"""Chat templates of twenty well-known models, in our own minimal versions: rendered as `transformers` renders them.

Each file keeps what is peculiar to its original: white space control, namespaces, dates, tools, documents, marks for
training, roles that must alternate.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import jinja2
import pytest
from transformers.utils.chat_template_utils import render_jinja_template

from reference_impl.checkpoints import chat_template

FOLDER = Path(__file__).parent / "chat_templates"
TEMPLATES = {path.stem: path.read_text(encoding="utf-8") for path in sorted(FOLDER.glob("*.jinja"))}
SPECIAL = {"bos_token": "<s>", "eos_token": "</s>", "unk_token": "<unk>"}
USER = {"role": "user", "content": "  Füße?\n"}
ANSWER = {"role": "assistant", "content": "<think>\nhm\n</think>\n\n<b>Yes</b> & no. "}
SYSTEM = {"role": "system", "content": "Be brief."}
CONVERSATIONS = {
    "one question": [USER],
    "with a system message": [SYSTEM, USER],
    "several turns": [SYSTEM, USER, ANSWER, {"role": "user", "content": "Why?"}],
    "ends with an answer": [USER, ANSWER],
    "two questions in a row": [USER, USER],
}
TOOLS = [{"type": "function", "function": {"name": "add", "description": "a < b & 'c'", "parameters": {"x": "ü"}}}]
DOCUMENTS = [{"title": "One", "text": "first"}, {"title": "Two", "text": "second"}]


def theirs(template: str, messages: list[dict[str, str]], **values: Any) -> str | None:
    """None if the template refuses."""
    try:
        return str(render_jinja_template([messages], chat_template=template, **values)[0][0])
    except jinja2.TemplateError:
        return None


def ours(template: str, messages: list[dict[str, str]], **values: Any) -> str | None:
    try:
        return chat_template.render(template, {"messages": messages} | values)
    except ValueError:
        return None


def test_there_are_twenty_templates() -> None:
    assert len(TEMPLATES) == 20


@pytest.mark.parametrize("name", TEMPLATES)
def test_a_known_template_renders_as_transformers_renders_it(name: str) -> None:
    rendered = 0
    for messages in CONVERSATIONS.values():
        for prompt in (False, True):
            for tools, documents in ((None, None), (TOOLS, DOCUMENTS)):
                values = {"add_generation_prompt": prompt, "tools": tools, "documents": documents} | SPECIAL
                expected = theirs(TEMPLATES[name], messages, **values)
                assert ours(TEMPLATES[name], messages, **values) == expected
                rendered += expected is not None
    assert rendered >= 8
