"""The lessons' tables: what a reader sees in a terminal and on a page, and where quiet measurements come from."""

import pytest

from interactives.lesson_tables import quiet_table, quiet_value, table
from reference_impl.benchmarks.harness.committed import quiet_rows


def test_numbers_are_formatted_and_aligned_to_the_right_and_words_to_the_left() -> None:
    shown = table({"weights": "", "GB": ".2f", "users": ","}, [("16 bits", 16.06, 1234), ("4 bits", 4.0, None)])
    assert repr(shown).splitlines() == ["weights      GB   users", "16 bits   16.06   1,234", "4 bits     4.00       –"]


def test_the_page_gets_a_table_with_headings_whose_cells_are_escaped() -> None:
    html = table({"a < b": ""}, [("<i>",)], caption="R & D")._repr_html_()
    assert '<th scope=col style="text-align:left;padding:0.15em 0.6em">a &lt; b</th>' in html
    assert ">&lt;i&gt;</td>" in html
    assert "<caption>R &amp; D</caption>" in html


def test_a_column_without_a_name_has_no_heading() -> None:
    html = table({"": "", "GB": ""}, [("16 bits", "16")])._repr_html_()
    assert html.count("<th ") == 1
    assert '<td style="text-align:left;padding:0.15em 0.6em"></td>' in html


def test_a_quiet_table_names_the_machine_and_the_date_and_has_the_committed_values() -> None:
    shown = repr(quiet_table("batching", {"batching": ("batching", ""), "steps": ("steps", "")}))
    assert shown.splitlines()[0] == "Measured on a quiet machine: AMD EPYC 2 cores, 2026-11-30"
    assert [line.split() for line in shown.splitlines()[2:]] == [["continuous", "110"], ["static", "161"]]
    assert quiet_value("batching", "steps", batching="static") == 161


def test_a_section_that_no_quiet_machine_measured_is_an_error_that_names_it() -> None:
    with pytest.raises(KeyError, match="no run on a quiet machine has the section 'tea'"):
        quiet_rows("tea")
