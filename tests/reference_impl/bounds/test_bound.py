"""The command `bound`: its figures, its table, its refusals."""

import json

import pytest

from reference_impl.__main__ import main

CONTRACT = "bound --model llama-3-8b --gpu h100-sxm --batch 32 --context 2048 --weight-bits 16"


def figures(capsys, command):
    assert main([*command.split(), "--json"]) == 0
    return json.loads(capsys.readouterr().out)


def table(capsys, command):
    assert main(command.split()) == 0
    return capsys.readouterr().out


def refusal(capsys, command):
    try:
        status = main(command.split())
    except SystemExit as error:
        status = error.code
    output = capsys.readouterr()
    assert (status, output.out) == (2, "")
    (line,) = output.err.splitlines()
    return line


def test_json_has_the_paper_s_figures_for_a_batch_of_32(capsys):
    bounds = figures(capsys, CONTRACT)
    assert bounds["step_seconds"] == pytest.approx(7.358e-3, abs=5e-7)
    assert bounds["tokens_per_second"] == pytest.approx(4348.8, abs=0.05)
    assert bounds["n_params"] == 8_030_261_248
    assert bounds["weight_bytes"] == 16_060_522_496
    assert bounds["kv_bytes_per_token"] == 131_072
    assert bounds["kv_bytes"] == 32 * 2048 * 131_072
    assert bounds["max_sequences"] == 238
    assert bounds["limit"] == "bandwidth"
    assert bounds["arithmetic_binds_from_batch"] is None
    assert (bounds["weights_fit"], bounds["fits"]) == (True, True)


def test_the_table_states_units(capsys):
    text = table(capsys, CONTRACT)
    for part in (
        "7.358 ms",
        "4,348.8 token/s",
        "16.061 GB",
        "131,072 bytes a token",
        "238 of 2,048 tokens",
        "FLOP/byte",
    ):
        assert part in text
    assert text.startswith("llama-3-8b on H100 SXM: batch 32, 2,048 tokens of context each\n")


def test_scales_are_counted(capsys):
    command = "bound --model llama-3-70b --batch 1 --context 1 --weight-bits 4 --group-size 128"
    bounds = figures(capsys, command)
    assert bounds["bits_per_weight"] == 4.125
    assert bounds["weight_bytes"] == pytest.approx(36.4e9, abs=5e7)
    assert bounds["step_seconds"] == pytest.approx(10.9e-3, abs=5e-5)
    assert "4 bits + a 16-bit scale per 128 = 4.125 per weight" in table(capsys, command)


def test_two_gpus_halve_the_step(capsys):
    bounds = figures(capsys, "bound --model llama-3-70b --gpus 2 --context 1")
    assert bounds["step_seconds"] == pytest.approx(21.1e-3, abs=5e-5)
    assert bounds["fits"] is True


def test_what_does_not_fit_is_said_and_is_no_error(capsys):
    assert "141.108 GB of 80.000 GB: the weights alone do not fit" in table(
        capsys, "bound --model llama-3-70b --context 1"
    )
    batch = table(capsys, "bound --batch 239")
    assert "the batch does not fit" in batch
    assert "capacity: it does not fit" in batch
    assert figures(capsys, "bound --batch 239")["limit"] == "capacity"
    assert figures(capsys, "bound --model llama-3-70b")["max_sequences"] == 0


def test_where_arithmetic_would_bind_is_said(capsys):
    assert "at no batch size (only below 421 tokens of context); memory ends at 238" in table(capsys, CONTRACT)
    assert "from batch 425 on, within memory" in table(capsys, "bound --batch 8 --context 128")
    assert figures(capsys, "bound --batch 500 --context 128")["limit"] == "arithmetic"


def test_linear_layers_and_attention_add_up_to_the_step(capsys):
    bounds = figures(capsys, "bound --batch 400 --context 2048")
    assert bounds["linear_layers_compute_bound_from_batch"] == 296
    assert bounds["linear_seconds"] == pytest.approx(2 * 8_030_261_248 * 400 / 989.5e12)  # its FLOPs
    assert bounds["attention_seconds"] == pytest.approx(400 * 2048 * 131_072 / 3.35e12)  # its bytes
    assert bounds["step_seconds"] == pytest.approx(bounds["linear_seconds"] + bounds["attention_seconds"])
    assert "compute-bound from batch 296 on" in table(capsys, CONTRACT)


def test_a_context_beyond_the_model_s_own_is_noted(capsys):
    assert "made for at most 4,096 tokens" in table(capsys, "bound --model llama-2-7b --context 5000")
    assert "note" not in table(capsys, "bound --model llama-2-7b --context 4096")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ("--model gpt-9", "bound: unknown model 'gpt-9'; known: smollm2-135m, "),
        ("--gpu tpu", "bound: unknown GPU 'tpu'; known: h100-sxm, "),
        ("--batch 0", "argument --batch: expected a whole number from 1 to 10^12, got '0'"),
        ("--batch 1.5", "argument --batch: expected a whole number from 1 to 10^12, got '1.5'"),
        ("--context -1", "argument --context: expected a whole number"),
        ("--context 9" + "9" * 400, "argument --context: expected a whole number"),
        ("--weight-bits 0", "argument --weight-bits: expected a number above 0 and at most 64, got '0'"),
        ("--weight-bits nan", "argument --weight-bits: expected a number above 0 and at most 64, got 'nan'"),
        ("--group-size 0", "argument --group-size: expected a whole number"),
        ("--utilization 50", "argument --utilization: expected a number above 0 and at most 1, got '50'"),
        ("--batch", "argument --batch: expected one argument"),
        ("--turbo", "unrecognized arguments: --turbo"),
    ],
)
def test_bad_options_are_refused_in_one_line(capsys, options, message):
    assert message in refusal(capsys, f"bound {options}")
