"""The lessons' diagrams: readable by eye and by ear, on a phone too, with numbers that are the course's own."""

import re
from collections.abc import Iterator
from itertools import combinations
from xml.etree import ElementTree

import pytest
from matplotlib import get_data_path
from matplotlib.ft2font import FT2Font

from interactives import diagrams
from interactives.diagrams.drawing import Diagram, Drawing

NAMES = [name for name in diagrams.__all__ if name != "Diagram"]
SVG = "{http://www.w3.org/2000/svg}"
Box = tuple[float, float, float, float]


@pytest.fixture(params=NAMES)
def diagram(request: pytest.FixtureRequest) -> Diagram:
    return getattr(diagrams, request.param)()


def root(diagram: Diagram) -> ElementTree.Element:
    return ElementTree.fromstring(diagram.svg)


def words(diagram: Diagram) -> str:
    return " ".join(element.text or "" for element in root(diagram).iter(f"{SVG}text"))


def width(text: str, size: float, bold: bool) -> float:
    """In DejaVu Sans, which is wider than the faces that systems use for controls."""
    font = FT2Font(f"{get_data_path()}/fonts/ttf/DejaVuSans{'-Bold' if bold else ''}.ttf")
    font.set_size(size, 72)
    font.set_text(text)
    return font.get_width_height()[0] / 64


def boxes(diagram: Diagram) -> Iterator[tuple[str, Box]]:
    """The words with left, top, right and bottom."""
    for element in root(diagram).iter(f"{SVG}text"):
        text, size = element.text or "", float(element.attrib["font-size"])
        across = width(text, size, "font-weight" in element.attrib)
        left = (
            float(element.attrib["x"]) - {"start": 0, "middle": 0.5, "end": 1}[element.attrib["text-anchor"]] * across
        )
        baseline = float(element.attrib["y"])
        yield text, (left, baseline - 0.75 * size, left + across, baseline + 0.22 * size)


def test_it_has_a_title_a_description_and_a_caption_that_says_where_its_numbers_come_from(diagram: Diagram) -> None:
    svg = root(diagram)
    title, description = svg.find(f"{SVG}title"), svg.find(f"{SVG}desc")
    assert title is not None
    assert description is not None
    assert title.text == diagram.title
    assert len(description.text or "") > 80
    assert svg.attrib["role"] == "img"
    assert svg.attrib["aria-labelledby"] == f"{title.attrib['id']} {description.attrib['id']}"
    html = diagram._repr_mimebundle_()["text/html"]
    assert html.index(diagram.see[:10]) < html.index(diagram.source[:10])


def test_its_words_are_at_least_11_pixels_high_on_a_phone(diagram: Diagram) -> None:
    assert root(diagram).attrib["viewBox"].split()[:3] == ["0", "0", "360"]
    on_a_phone = 310 / 360  # a page 360 pixels wide leaves so many for a figure
    for element in root(diagram).iter(f"{SVG}text"):
        assert float(element.attrib["font-size"]) * on_a_phone >= 11, element.text


def test_its_words_lie_inside_the_drawing(diagram: Diagram) -> None:
    height = float(root(diagram).attrib["viewBox"].split()[3])
    for text, (left, top, right, bottom) in boxes(diagram):
        assert left >= 0, text
        assert top >= 0, text
        assert right <= 360, text
        assert bottom <= height, text


def test_no_words_overlap_others(diagram: Diagram) -> None:
    for (one, a), (other, b) in combinations(boxes(diagram), 2):
        beside = a[2] <= b[0] or b[2] <= a[0]
        above = a[3] <= b[1] or b[3] <= a[1]
        assert beside or above, f"{one!r} overlaps {other!r}"


def test_its_shapes_lie_inside_the_drawing(diagram: Diagram) -> None:
    height = float(root(diagram).attrib["viewBox"].split()[3])
    for element in root(diagram).iter(f"{SVG}rect"):
        x, y, across, down = (float(element.attrib[key]) for key in ("x", "y", "width", "height"))
        assert 0 <= x <= x + across <= 360
        assert 0 <= y <= y + down <= height


def test_its_colours_are_the_site_s_variables_with_fall_backs(diagram: Diagram) -> None:
    for element in root(diagram).iter():
        for colour in re.findall(r"(?:fill|stroke):([^;]+)", element.attrib.get("style", "")):
            assert re.fullmatch(r"var\(--[\w-]+, .+\)|none|url\(#[\w-]+\)", colour), colour


def test_ids_are_unique_over_all_diagrams() -> None:
    found = [
        element.attrib["id"]
        for name in NAMES
        for element in root(getattr(diagrams, name)()).iter()
        if "id" in element.attrib
    ]
    assert len(found) == len(set(found))


def test_names_are_those_that_can_be_called_and_a_wrong_one_is_named() -> None:
    with pytest.raises(AttributeError, match=r"no diagram 'teapot'; there are: .*memory_hierarchy"):
        diagrams.teapot  # noqa: B018


def test_a_terminal_shows_the_description() -> None:
    bundle = diagrams.memory_hierarchy()._repr_mimebundle_()
    assert bundle["text/plain"].startswith("Memories of an H100. From top to bottom: arithmetic units")


def test_words_that_nobody_could_read_are_refused() -> None:
    with pytest.raises(ValueError, match="'tiny' would be 9 high, and words are at least 13"):
        Drawing("small", height=20).text(0, 10, "tiny", size=9)


def test_words_are_escaped() -> None:
    drawing = Drawing("escaped", height=20)
    drawing.text(0, 15, "a < b & c")
    diagram = drawing.finish("R & D", "one < two", see="<i>", source="&")
    assert words(diagram) == "a < b & c"
    assert "&lt;i&gt;" in diagram._repr_mimebundle_()["text/html"]


# --- numbers, written out


def test_the_memory_hierarchy_states_the_reference_values_and_draws_the_channels_to_scale() -> None:
    diagram = diagrams.memory_hierarchy()
    for number in ("989.5 TFLOP/s", "50 MB", "3.35 TB/s", "80 GB", "16.06 GB", "50 GB/s", "0.3 ms", "20 ms"):
        assert number in words(diagram)
    widths = sorted(float(element.attrib["width"]) for element in root(diagram).iter(f"{SVG}rect"))
    # the sliver of 50 MB, the host's link, the wide channel, 16.06 GB of weights, and the frames of 80 GB
    sliver, link, channel, weights, frame, *_ = widths
    assert channel / link == pytest.approx(67)
    assert weights / frame == pytest.approx(16.06 / 80, rel=1e-3)
    assert sliver / frame == pytest.approx(0.05 / 80, rel=1e-2)


def test_the_way_through_a_layer_states_the_sizes_of_smollm2() -> None:
    shown = words(diagrams.layer_path())
    for number in ("576 numbers", "9 heads", "884,736", "1,536", "2,654,208", "30 in all"):
        assert number in shown
    assert 30 * (884_736 + 2_654_208 + 2 * 576) + 49_152 * 576 + 576 == 134_515_008  # nothing is left out


def test_attention_follows_the_numbers_it_is_given() -> None:
    """Two equal scores share equally, whatever the values are."""
    diagram = diagrams.attention_four_tokens(
        query=(1, 0), keys=((0, 1), (0, 2), (0, 3), (0, 4)), values=((4, 0), (0, 4), (0, 0), (0, 0))
    )
    assert words(diagram).count("25.0%") == 4
    assert "(1.00, 1.00)" in words(diagram)


def test_attention_by_hand_has_the_shares_of_the_lesson() -> None:
    shown = words(diagrams.attention_four_tokens())
    for number in ("3.8%", "75.7%", "10.2%", "(0.35, 3.13)"):
        assert number in shown


def test_shared_heads_keep_a_third_of_the_numbers() -> None:
    diagram = diagrams.grouped_queries()
    assert "keeps 1,152 numbers" in words(diagram)
    assert "keeps 384 numbers" in words(diagram)


def test_the_cache_grows_by_23_040_bytes_a_token() -> None:
    diagram = diagrams.growing_cache()
    for number in ("69 kB", "92 kB", "115 kB", "138 kB"):  # 3, 4, 5 and 6 tokens
        assert number in words(diagram)


def test_295_squares_stand_for_the_operations_while_one_byte_arrives() -> None:
    diagram = diagrams.memory_and_arithmetic()
    squares = [element for element in root(diagram).iter(f"{SVG}rect") if element.attrib["width"] == "9"]
    assert len(squares) == 1 + 295
    assert "295 operations" in words(diagram)


def test_prefill_and_decode_read_the_same_and_compute_a_thousand_times_as_much() -> None:
    """2 · 8.03e9 FLOPs a token at half of 989.5e12 a second, beside 16.06 GB at 3.35 TB/s."""
    shown = words(diagrams.two_products())
    assert shown.count("reading the weights: 4.8 ms") == 2
    assert "arithmetic: 32.5 ms" in shown
    assert "arithmetic: 0.032 ms" in shown


def test_a_step_s_bar_is_as_long_as_what_it_reads() -> None:
    diagram = diagrams.step_reads()
    for told in ("4.9 ms", "5.4 ms", "7.4 ms", "205 tokens/s", "1,472 tokens/s", "4,349 tokens/s", "16.06 GB"):
        assert told in words(diagram)
    pieces = [element for element in root(diagram).iter(f"{SVG}rect") if element.attrib["height"] == "30"]
    assert len(pieces) == 3 + 1 + 8 + 32
    widths = [float(piece.attrib["width"]) for piece in pieces]
    assert widths[-1] / widths[0] == pytest.approx(0.26844 / 16.0605, rel=1e-3)


def test_chunks_shorten_the_pause_and_static_batching_makes_the_newcomer_wait() -> None:
    """A pass of two writers is 4.79 ms. The prompt of 2,000 tokens takes 67.0 ms, a chunk of 512 16.7 to 17.5."""
    shown = words(diagrams.three_batchings())
    assert "C's first token: 163 ms; B's longest pause: 5 ms" in shown  # 20 · 4.794 + 67.0
    assert "C's first token: 96 ms; B's longest pause: 72 ms" in shown  # 6 · 4.794 + 67.0; 67.0 + 4.794
    assert "C's first token: 96 ms; B's longest pause: 17 ms" in shown


def test_blocks_leave_only_the_ends_of_the_last_ones_empty() -> None:
    shown = words(diagrams.slots_and_blocks())
    assert "empty: 126 of 192 places" in shown  # 3 · 64 less 9 + 37 + 20
    assert "empty: 30 of 96 places" in shown  # 1 + 3 + 2 blocks of 16
    assert "6 blocks are free" in shown


def test_the_block_table_is_the_allocator_s() -> None:
    diagram = diagrams.block_table()
    assert "sequence A has 39 tokens in blocks 0, 1, 4" in diagram.description
    assert "sequence B has 36 tokens in blocks 2, 3, 5" in diagram.description


def test_the_first_writer_after_a_fork_gets_a_copy_and_the_full_blocks_stay_shared() -> None:
    diagram = diagrams.copy_on_write()
    assert "its table is now 0, 1, 3" in diagram.description
    assert words(diagram).split().count("×2") == 3 + 2
    assert words(diagram).split().count("×1") == 3 + 2


def test_shared_prefixes_are_counted() -> None:
    shown = words(diagrams.prefix_tree())
    for told in ("×3: A, B, C", "×2: A, B", "×1: C", "×1: B", "4 blocks in place of 7"):
        assert told in shown


def test_the_copy_takes_as_long_as_its_bytes() -> None:
    assert words(diagrams.offload_hazard()).count("10.7 ms") == 2  # 4,096 · 131,072 bytes at 50 GB/s


NUMBERS = {
    "number_lines": ("15 values, equal steps", "15 values, close near 0", "255 values", "253 values"),
    "group_bits": ("128 bits", "144 bits / 32 weights = 4.5 bits a weight"),
    "gptq_columns": ("rounded: 18%", "GPTQ: 7%"),
    # 0.45 is 0.117 from 1/3; doubled it is 0.1 from 1, and half of that from 0.45
    "awq_scaling": ("comes back as 0.33, off by 0.117", "comes back as 0.50, off by 0.050", ": 0.93", ": 0.40"),
    "speculative_round": ("3. The round brings 3 tokens", "corrects", "dropped"),
    # 1 + 0.9 + 0.81 + 0.729 + 0.6561 and 1 + 0.7 + 0.49 + 0.343 + 0.2401
    "tokens_per_pass": ("acceptance 0.9: 4.10 tokens a pass", "acceptance 0.7: 2.77 tokens a pass", "0.66", "0.24"),
    "acceptance_areas": ("accepted, 70% of all guesses", "rejected, 30%", "drawn instead, 30%"),
    # a step of batch 32 is 7.36 ms; 2,048 tokens are 66.5 ms and their attention 2.3 ms
    "request_timeline": ("TTFT 119 ms", "50 ms of waiting + 69 ms", "7.4 ms", "24.1 ms", "the gaps, 10.2 ms", "180 ms"),
    "queueing": ("50%: 2 times", "80%: 5 times", "90%: 10 times", "95%: 20 times"),
    "tensor_parallel": ("GPU 1: 70.6 GB", "twice in each of 80 layers:", "160 exchanges a step"),
    # 2,048 tokens of 131,072 bytes, over 50 GB/s
    "prefill_decode_split": ("for 69 ms", "moves 268 MB of cache", "7.4 ms", "on its way for 5.4 ms"),
}


@pytest.mark.parametrize("name", NUMBERS)
def test_a_diagram_states_the_numbers_written_here(name: str) -> None:
    said = words(getattr(diagrams, name)())
    for number in NUMBERS[name]:
        assert number in said, number


def test_gptq_s_example_moves_two_weights_off_their_nearest_value() -> None:
    diagram = diagrams.gptq_columns()
    values = [element for element in root(diagram).iter(f"{SVG}text") if element.attrib["text-anchor"] == "end"]
    assert [one.text for one in values if "font-weight" in one.attrib] == ["−0.60", "0.30"]
