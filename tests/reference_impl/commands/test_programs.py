"""The two program exercises as a learner's shell sees them, and their functions as a problem set calls them."""

import os
import subprocess
import sys

import pytest

from reference_impl.commands.quantize import parse_quantization_input, quantization_report, quantize_group
from reference_impl.commands.speculate import parse_round, speculative_report
from reference_impl.decoding.greedy import accept_greedy

OUTLIER = "0.12 -0.5 0.33 0.07 8.0"


def run(command, data, **options):
    data = data.encode() if isinstance(data, str) else data
    return subprocess.run(
        [sys.executable, "-m", "reference_impl", *command.split()], input=data, capture_output=True, **options
    )


def refusal(command, data):
    """The one line that a refused input gets; checks that there is no output, no traceback and exit status 2."""
    result = run(command, data)
    assert result.returncode == 2
    assert result.stdout == b""
    lines = result.stderr.decode().splitlines()
    assert len(lines) == 1
    return lines[0]


# Quantize
def test_one_group_with_an_outlier():
    result = run("quantize", OUTLIER + "\n5\n")
    assert result.stdout.decode().splitlines() == ["group 1: scale 0.06299 q 2 -8 5 1 127", "mean error: 0.00639"]
    assert (result.returncode, result.stderr) == (0, b"")


@pytest.mark.parametrize(("group_size", "mean_error"), [(5, "0.00639"), (4, "0.00069"), (2, "0.00041"), (1, "0.00000")])
def test_the_mean_error_falls_with_the_group_size(group_size, mean_error):
    assert quantization_report(f"{OUTLIER}\n{group_size}").splitlines()[-1] == f"mean error: {mean_error}"


def test_the_last_group_may_be_shorter():
    assert quantization_report("127 1 2 254 0\n2") == (
        "group 1: scale 1.00000 q 127 1\n"
        "group 2: scale 2.00000 q 1 127\n"
        "group 3: scale 0.00000 q 0\n"
        "mean error: 0.00000"
    )


def test_1376_weights_at_group_size_64_make_22_groups():
    assert len(quantization_report("1 " * 1376 + "\n64").splitlines()) == 22 + 1


@pytest.mark.parametrize(
    "text",
    [
        "127 0.5 1.5\n3",
        "127,0.5,1.5\n3\n",
        "127, 0.5 ,1.5,\r\n3\r\n\r\n",
        "  127\t0.5 1.5  \n  3  \n\n \n",
        "+1.27e2 .5 1_5e-1\n+3\n",
        "\ufeff127 0.5 1.5\n3\n",
    ],
)
def test_separators_line_ends_and_notations_do_not_matter(text):
    assert run("quantize", text).stdout.decode().splitlines() == [
        "group 1: scale 1.00000 q 127 0 2",
        "mean error: 0.33333",
    ]


def test_the_output_has_no_negative_zero():
    assert quantization_report("-0.0 -0.1 127\n3").startswith("group 1: scale 1.00000 q 0 0 127\n")
    assert quantization_report("-0.0\n1") == "group 1: scale 0.00000 q 0\nmean error: 0.00000"


def test_a_group_size_beyond_the_weights_is_one_group():
    assert quantization_report(f"127 1\n{10**30}").splitlines()[0] == "group 1: scale 1.00000 q 127 1"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "line 1: no weights"),
        ("\n4\n", "line 1: no weights"),
        (" , ,\n4\n", "line 1: no weights"),
        ("1 2 x3\n4\n", "line 1, weight 3: 'x3' is not a finite number"),
        ("1 nan\n4\n", "line 1, weight 2: 'nan' is not a finite number"),
        ("inf\n4\n", "line 1, weight 1: 'inf' is not a finite number"),
        ("1 1e400\n4\n", "line 1, weight 2: '1e400' is not a finite number"),
        ("1 2", "line 2: the group size is missing"),
        ("1 2\n\n4\n", "line 2: the group size is missing"),
        ("1 2\n2.0\n", "line 2: the group size must be a positive integer, got '2.0'"),
        ("1 2\n0\n", "line 2: the group size must be a positive integer, got '0'"),
        ("1 2\n-3\n", "line 2: the group size must be a positive integer, got '-3'"),
        ("1 2\n2 2\n", "line 2: the group size must be a positive integer, got '2 2'"),
        ("1 2\n2\n\nmore\n", "line 4: nothing may follow the group size, got 'more'"),
        (b"1 \xff\n2\n", "line 1: the input is not UTF-8 text (byte 0xff)"),
        ("1 \x1b[31m\n2\n", "line 1, weight 2: '\\x1b[31m' is not a finite number"),
        ("x" * 1000 + "\n2\n", f"line 1, weight 1: '{'x' * 40}'... (1,000 characters) is not a finite number"),
    ],
)
def test_a_refused_quantization_names_what_and_where(text, message):
    assert refusal("quantize", text) == f"quantize: {message}"


def test_a_million_weights_are_read():
    result = run("quantize", "1 -1 0 0.5\n".replace("\n", " ") * 250_000 + "\n128\n", timeout=60)
    assert result.returncode == 0
    assert len(result.stdout.splitlines()) == 7813 + 1  # 1,000,000 / 128, rounded up, and the mean


@pytest.mark.parametrize(
    ("weights", "scale", "q"),
    [
        ([127, 0.5, 1.5, 2.5, -0.5, -2.5, 3.5, -126.5], 1.0, [127, 0, 2, 2, 0, -2, 4, -126]),
        ([0.0, -0.0], 0.0, [0, 0]),
        ([5.0, 5.0], 5 / 127, [127, 127]),
        ([1, -1, 0.5], 1 / 127, [127, -127, 64]),  # 63.5 goes to the even neighbour
        ([-3], 3 / 127, [-127]),
    ],
)
def test_a_group_has_its_largest_weight_at_127_and_halves_go_to_even(weights, scale, q):
    assert quantize_group(weights) == (scale, q)


def test_the_largest_weight_comes_back_exactly():
    scale, q = quantize_group([1, -1, 0.5])
    assert q[0] * scale == 1


def test_a_group_of_the_smallest_doubles_keeps_q_within_127():
    smallest = 5e-324
    for multiple in (1, 60, 63, 64, 182, 190, 191):
        scale, q = quantize_group([multiple * smallest])
        assert scale > 0
        assert 0 < q[0] <= 127


def test_weights_near_the_largest_double_have_a_finite_mean_error():
    report = quantization_report(" ".join(["1.7e308", "1.0e308"] * 500) + "\n2")
    assert "inf" not in report
    assert "nan" not in report


@pytest.mark.parametrize(
    ("weights", "message"),
    [([], "no weights"), ([1, float("nan")], "weight 2 is nan"), ([float("-inf")], "weight 1 is -inf")],
)
def test_a_group_that_cannot_be_quantized_is_refused(weights, message):
    with pytest.raises(ValueError, match=message):
        quantize_group(weights)


def test_parsing_gives_weights_and_group_size():
    assert parse_quantization_input("1, 2.5 -3\n2\n") == ([1.0, 2.5, -3.0], 2)


# Speculate
def test_accepted_tokens_then_the_correction():
    result = run("speculate", "draft: a b c | target: a b x y\n")
    assert result.stdout.decode().splitlines() == ["round 1: +3 a b x", "3 tokens in 1 target passes (3.00 per pass)"]
    assert (result.returncode, result.stderr) == (0, b"")


def test_a_good_draft_and_a_wrong_one():
    assert speculative_report("draft: the cat | target: the cat sat\n\r\n  \ndraft: a b | target: x b c\r\n") == (
        "round 1: +3 the cat sat\nround 2: +1 x\n4 tokens in 2 target passes (2.00 per pass)"
    )


@pytest.mark.parametrize(
    ("draft", "target", "tokens"),
    [
        ("a b c", "a b c d", "a b c d"),  # all match: the bonus token
        ("a b c", "x b c d", "x"),  # a later match does not count
        ("a b c", "a x c d", "a x"),
        ("", "a", "a"),
    ],
)
def test_the_longest_matching_start_is_accepted(draft, target, tokens):
    assert accept_greedy(draft.split(), target.split()) == tokens.split()


def test_token_id_0_is_a_token_like_any_other():
    assert accept_greedy([0, 0], [0, 0, 0]) == [0, 0, 0]


@pytest.mark.parametrize(
    ("line", "parts"),
    [
        ("draft: a b c | target: a b x y", ("a b c", "a b x y")),
        ("draft: | target: a", ("", "a")),
        ("draft:|target:a", ("", "a")),
        ("  draft:a\tb|target: a  b c  ", ("a b", "a b c")),
        ("draft: target: x: | target: draft: x: :", ("target: x:", "draft: x: :")),
        ("draft: <|end|> | | target: <|end|> | c", ("<|end|> |", "<|end|> | c")),
        ("draft: größe | target: größe 猫", ("größe", "größe 猫")),
    ],
)
def test_a_round_is_split_into_its_tokens(line, parts):
    assert parse_round(line) == tuple(part.split() for part in parts)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "line 1: no round; expected lines like 'draft: a b | target: a b c'"),
        ("\n \n", "line 1: no round; expected lines like 'draft: a b | target: a b c'"),
        ("\ndraft: a | target: a b\n\na b\n", "line 4: missing 'draft:' at the start, got 'a b'"),
        ("draft: a b\n", "line 1: missing '| target:' after the draft, got 'draft: a b'"),
        ("target: a b | draft: a\n", "line 1: missing 'draft:' at the start, got 'target: a b | draft: a'"),
        (
            "draft: a b | target: a b\n",
            "line 1: the target list must be exactly one longer than the draft of 2, got 2 tokens",
        ),
        ("draft: | target:\n", "line 1: the target list must be exactly one longer than the draft of 0, got 0 tokens"),
        (b"draft: a | target: a b\ndraft: \xc3 | ", "line 2: the input is not UTF-8 text (byte 0xc3)"),
    ],
)
def test_a_refused_round_names_what_and_where(text, message):
    assert refusal("speculate", text) == f"speculate: {message}"


def test_tokens_of_every_script_are_printed_whatever_the_locale():
    result = run("speculate", "draft: | target: 猫\n", env=os.environ | {"LC_ALL": "C", "PYTHONUTF8": "0"})
    assert result.stdout.decode().splitlines()[0] == "round 1: +1 猫"


# Both
@pytest.mark.parametrize("command", ["quantize", "speculate"])
def test_closed_standard_input_is_refused(command):
    script = f'exec "{sys.executable}" -m reference_impl {command} <&-'
    result = subprocess.run(["sh", "-c", script], capture_output=True, text=True)
    assert (result.returncode, result.stdout) == (2, "")
    assert result.stderr == f"{command}: no input: standard input is closed\n"


def test_a_reader_that_leaves_early_is_no_error():
    script = f'yes "draft: | target: a" | head -200000 | "{sys.executable}" -m reference_impl speculate | head -1'
    result = subprocess.run(["sh", "-c", script], capture_output=True, text=True)
    assert (result.stdout, result.stderr) == ("round 1: +1 a\n", "")


def test_an_unknown_command_is_answered_with_the_known_ones():
    message = refusal("quantise", "")
    assert message.startswith("python -m reference_impl: unknown command 'quantise'; known: bound, ")


def test_no_command_is_refused_and_help_lists_them():
    assert "no command; known: bound, " in refusal("", "")
    shown = run("--help", "").stdout.decode()
    assert all(name in shown for name in ("bound", "quantize", "speculate"))


def test_an_unexpected_argument_is_refused_in_one_line():
    assert "unrecognized arguments: --fast" in refusal("quantize --fast", "1\n1\n")


def test_every_registered_command_exists():
    from importlib import import_module

    from reference_impl.__main__ import COMMANDS

    for module, _ in COMMANDS.values():
        assert callable(import_module(f"reference_impl.commands.{module}").main)


def test_the_program_exercises_import_neither_numpy_nor_torch():
    code = (
        "import sys; import reference_impl.__main__, reference_impl.commands.quantize, "
        "reference_impl.commands.speculate; print(sorted({'numpy', 'torch'} & set(sys.modules)))"
    )
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True).stdout == "[]\n"
