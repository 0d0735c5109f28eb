"""Making a submission's HTML and markdown harmless takes work in proportion to its length, whatever is in it."""

from __future__ import annotations

import sys
from collections.abc import Callable
from html.parser import HTMLParser
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from autograder.feedback.sanitize import clean_html, markdown_html

HTML = [
    "<div>",
    "<b title=1><table><td></b></td></table>",
    "<p><b>",
    "</div>",
    "<a b=c d>",
    "<a x='",
    "<!--",
    "<![CDATA[",
    "<?x",
    "<script>",
    "</script ",
    "<img src=x>",
    "&amp",
    "<",
]
MARKDOWN = ["\\begin{a}", "\\begin{a}\\end{b}", "$$", "[a](", "**a", "> - ", "# a\n", "|a|b|\n|-|-|\n", "<div>", "`"]


def calls(work: Callable[[str], str], text: str) -> int:
    """How many functions are called, those of the interpreter included."""
    count = 0

    def called(frame: Any, event: str, argument: Any) -> None:
        nonlocal count
        count += event in ("call", "c_call")

    sys.setprofile(called)
    try:
        work(text)
    finally:
        sys.setprofile(None)
    return count


@pytest.mark.parametrize(
    ("work", "part"), [*((clean_html, part) for part in HTML), *((markdown_html, part) for part in MARKDOWN)]
)
def test_twice_the_text_takes_twice_the_work(work: Callable[[str], str], part: str) -> None:
    work(part)  # what is compiled once
    once, twice, four_times = (calls(work, part * (1000 * times // len(part))) for times in (1, 2, 4))
    assert twice <= 2.2 * once
    assert four_times <= 2.2 * twice


@pytest.mark.parametrize("part", MARKDOWN[:2])
def test_the_renderer_does_not_search_the_rest_of_the_text_for_each_begin(part: str) -> None:
    """Regular expressions do that unseen, so what reaches them is looked at."""
    from autograder.feedback import sanitize

    assert "\\begin" not in sanitize._closed(part * 3)
    assert sanitize._closed("\\begin{a}x\\end{a}\\begin{a}") == "\\begin{a}x\\end{a}&#92;begin{a}"


def test_markup_that_is_nested_too_deeply_keeps_its_text_and_loses_its_tags() -> None:
    clean = clean_html("<div>" * 20_000 + "deep" + "</div>" * 20_000 + "<b>after</b>")
    assert clean.count("<div>") == clean.count("</div>") == 100
    assert "deep" in clean
    assert clean.endswith("<b>after</b>")


def test_what_is_open_is_closed_and_what_was_never_open_is_dropped() -> None:
    assert clean_html("</div><p>a<b>b<i>c</p>d") == "<p>a<b>b<i>c</i></b></p>d"
    assert clean_html("<ul><li>a<li>b</ul>") == "<ul><li>a</li><li>b</li></ul>"
    assert clean_html("1 < 2 && x<y") == "1 &lt; 2 &amp;&amp; x&lt;y"
    assert clean_html("<td title='a \"quoted\" word'>&lt;b&gt;&nbsp;</td>") == (
        '<td title="a &quot;quoted&quot; word">&lt;b&gt;\xa0</td>'
    )
    assert clean_html("<a =x href=https://example.com/?a=1&b=2>y</a>") == (
        '<a href="https://example.com/?a=1&amp;b=2">y</a>'
    )


class Strict(HTMLParser):
    """Reads clean HTML and refuses whatever a browser would have to guess or run."""

    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.open: list[str] = []

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        assert tag in {"div", "p", "b", "a", "img", "td", "table", "br"}
        names = [name for name, _ in attributes]
        assert len(set(names)) == len(names)
        assert set(names) <= {"title", "href", "src", "alt"}
        for name, value in attributes:
            assert value is not None
            assert name != "src" or value.startswith("data:image/png;base64,")
            assert name != "href" or value.startswith(("https://", "#"))
        if tag not in ("br", "img"):
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_comment(self, data: str) -> None:
        raise AssertionError("a comment")

    handle_decl = handle_pi = unknown_decl = handle_comment


PIECES = [
    "<div",
    "<p>",
    "<b",
    "<a",
    "<img",
    "<td>",
    "<table>",
    "</p>",
    "</b",
    "</div>",
    "<script>",
    "</script>",
    "<style>",
    "</style",
    "<svg>",
    "<!--",
    "-->",
    "<!",
    "<?",
    ">",
    "<",
    '"',
    "'\n",
    "=",
    "/",
    "onclick=alert(1)",
    "href=https://a.b",
    "href=javascript:x",
    "href=#",
    "src=data:image/png;base64,AA==",
    "src=x",
    "title=",
    "title='\n",
    'title="',
    "&",
    "&lt;",
    "&#60;script&#62;",
    "&quot;",
    "a",
    "\t",
    "\x00",
    "\u2028",
    "<BR/>",
    "<iframe",
    "<math>",
    "<noscript>",
    "</noscript>",
]


@given(st.lists(st.sampled_from([*PIECES, " "]), max_size=25).map("".join))
@settings(deadline=None, max_examples=300)
def test_whatever_comes_in_is_well_formed_and_harmless_when_it_comes_out(text: str) -> None:
    clean = clean_html(text)
    reader = Strict()
    reader.feed(clean)
    reader.close()
    assert reader.open == []
    assert clean_html(clean) == clean
