"""The command `generate`: the text of the generated tokens, with ranks and with drafts, and its refusals."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
import torch
from model_files import LETTERS, save_letters

from reference_impl.__main__ import main
from reference_impl.checkpoints import weights
from reference_impl.commands.generate import stream_text, summary
from reference_impl.decoding.sampling import SamplingParams
from reference_impl.engine.generate import generate
from reference_impl.speculative.speculator import SpeculationStats


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return save_letters(tmp_path_factory.mktemp("models") / "noise")


def test_text_streams_while_later_tokens_are_not_yet_made(folder: Path) -> None:
    made = []

    def tokens() -> Iterator[int]:
        for token in (1, 2, 3):
            made.append(token)
            yield token

    stream = stream_text(weights.load_tokenizer(folder), tokens())
    assert next(stream) == "B"
    assert made == [1]
    assert "".join(stream) == "CD"


def run(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str, str]:
    status = main(["generate", *arguments])
    out, err = capsys.readouterr()
    return status, out, err


def test_the_command_prints_the_text_of_the_generated_tokens(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    model, tokenizer = weights.load(folder)
    expected = tokenizer.decode(generate(model, tokenizer.encode("abc"), SamplingParams(1.0, seed=5), 12))
    options = ["--model", str(folder), "--prompt", "abc", "--max-tokens", "12", "--temperature", "1", "--seed", "5"]
    assert run(capsys, *options) == (0, expected + "\n", "")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--temperature", "-1"], "generate: temperature must be a finite number of at least 0, got -1.0"),
        (["--top-p", "2"], "generate: top_p must be a number from 0 to 1, got 2.0"),
        (["--model", "/no/such/model"], "generate: /no/such/model: no such model; expected smollm2-135m"),
        (["--chat"], "generate: this model has no chat template"),
        (["--max-tokens", "30"], "generate: 3 prompt tokens and 30 new ones exceed noise's context of 32"),
        (["--device", "abacus"], "generate: --device abacus: cannot be used here"),
        (["--ranks", "3"], "generate: noise: n_heads 4 does not divide over 3 ranks"),
    ],
)
def test_bad_input_is_one_line_and_status_2(
    folder: Path, capsys: pytest.CaptureFixture[str], options: list[str], message: str
) -> None:
    status, out, err = run(capsys, "--model", str(folder), "--prompt", "abc", *options)
    assert (status, out) == (2, "")
    assert err.startswith(message)
    assert err.count("\n") == 1


def test_two_ranks_together_write_one_text_the_same_as_one(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    options = ["--model", str(folder), "--prompt", "abc", "--max-tokens", "12", "--temperature", "1", "--seed", "5"]
    alone = run(capsys, *options)
    # In a process of its own, since the ranks write to what was standard output when the first rank started.
    command = [sys.executable, "-m", "reference_impl", "generate", *options, "--ranks", "2"]
    together = subprocess.run(command, capture_output=True, text=True, timeout=200, check=False)
    assert (together.returncode, together.stdout, together.stderr) == alone


def test_a_process_that_torchrun_has_started_is_one_rank(
    folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    options = ["--model", str(folder), "--prompt", "abc", "--max-tokens", "12"]
    alone = run(capsys, *options)
    torchrun = {"RUN_ID": "1", "RANK": "0", "WORLD_SIZE": "1", "LOCAL_RANK": "0", "ADDR": "127.0.0.1", "PORT": "0"}
    for name, value in torchrun.items():
        prefix = {"RUN_ID": "TORCHELASTIC_", "ADDR": "MASTER_", "PORT": "MASTER_"}.get(name, "")
        monkeypatch.setenv(prefix + name, value)
    assert run(capsys, *options) == alone
    assert run(capsys, *options, "--ranks", "2")[2] == "generate: --ranks 2: torchrun has started the ranks already\n"


@pytest.mark.parametrize("options", [["--drafts", "x"], ["--chat", "--raw"], ["--max-tokens", "0"]])
def test_options_that_do_not_exist_or_exclude_each_other_are_refused(
    capsys: pytest.CaptureFixture[str], options: list[str]
) -> None:
    with pytest.raises(SystemExit) as exit_info:
        main(["generate", "--prompt", "abc", *options])
    assert exit_info.value.code == 2
    assert capsys.readouterr().err.count("\n") == 1


@pytest.mark.model
def test_smollm2_knows_the_capital_of_france(capsys: pytest.CaptureFixture[str]) -> None:
    status, out, err = run(capsys, "--prompt", "The capital of France is", "--raw", "--max-tokens", "5")
    assert (status, err) == (0, "")
    assert out.startswith(" Paris")


@pytest.mark.model
def test_smollm2_answers_a_question_and_stops_by_itself(capsys: pytest.CaptureFixture[str]) -> None:
    status, out, _ = run(capsys, "--prompt", "What is the capital of France?")
    assert (status, out) == (0, "The capital of France is Paris.\n")


# --- Drafts ---------------------------------------------------------------------------------------------------------


def test_the_summary_counts_accepted_drafts_and_tokens_a_pass() -> None:
    stats = SpeculationStats(n_rounds=2, n_drafted=8, n_passes=4, n_tokens=10, judged=[2, 2, 1], accepted=[2, 1, 1])
    assert summary(stats) == "drafts: 4 of 8 drafted tokens accepted, 2.50 tokens a pass"
    assert summary(SpeculationStats()) == "drafts: none were needed"


def draft_run(capsys: pytest.CaptureFixture[str], folder: Path, *options: str) -> tuple[int, str, str]:
    return run(capsys, "--model", str(folder), "--prompt", "abc", "--max-tokens", "17", *options)


def test_the_command_writes_the_same_text_and_says_what_the_drafts_brought(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    plain = draft_run(capsys, folder)
    looked_up = draft_run(capsys, folder, "--draft", "ngram")
    assert looked_up[:2] == plain[:2]
    assert looked_up[2].startswith("drafts: ")
    itself = draft_run(capsys, folder, "--draft", str(folder), "--draft-tokens", "3")
    assert itself == (0, plain[1], "drafts: 12 of 12 drafted tokens accepted, 4.00 tokens a pass\n")


def test_a_draft_with_another_tokenizer_is_refused(
    folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    other = save_letters(tmp_path / "other", LETTERS[::-1].replace("a", "Z"))
    status, out, err = draft_run(capsys, folder, "--draft", str(other))
    assert (status, out) == (2, "")
    assert err == f"generate: --draft {other}: its tokenizer is not the model's, so its tokens mean something else\n"


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--draft", "/no/such/model"], "generate: /no/such/model: no such model"),
        (["--draft", "ngram", "--ranks", "2"], "generate: --draft works in one process only, not with --ranks"),
    ],
)
def test_bad_drafts_are_one_line_and_status_2(
    folder: Path, capsys: pytest.CaptureFixture[str], options: list[str], message: str
) -> None:
    status, out, err = draft_run(capsys, folder, *options)
    assert (status, out) == (2, "")
    assert err.startswith(message)
    assert err.count("\n") == 1


# --- The server with drafts -----------------------------------------------------------------------------------------


def test_a_server_with_drafts_answers_the_same_and_counts_them(folder: Path) -> None:
    from reference_impl.commands import serve
    from reference_impl.engine.request import Request
    from reference_impl.server.serving_loop import Snapshot

    options = ["--model", str(folder), "--kv-blocks", "16", "--token-budget", "64", "--device", "cpu"]
    plain, _, _ = serve._engine(serve._parser().parse_args(options))
    drafting, _, _ = serve._engine(
        serve._parser().parse_args([*options, "--draft", str(folder), "--draft-tokens", "3"])
    )
    assert Snapshot.of(drafting).drafted_tokens == 0  # warming up does not count
    requests = [Request(i, (3, 1, 4, i), 13) for i in range(3)]
    answers = [{i: done.tokens for i, done in engine.run(requests).items()} for engine in (plain, drafting)]
    assert answers[0] == answers[1]
    found = Snapshot.of(drafting)
    assert (found.drafted_tokens, found.accepted_tokens) == (27, 27)  # 12 tokens behind the first, four a pass
    assert Snapshot.of(plain).drafted_tokens == 0


def test_a_server_refuses_a_draft_with_another_tokenizer(
    folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    other = save_letters(tmp_path / "other", LETTERS[::-1].replace("a", "Z"))
    assert main(["serve", "--port", "0", "--model", str(folder), "--draft", str(other)]) == 2
    assert f"--draft {other}: its tokenizer is not the model's" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--kv-blocks", "1000000000000"], "a KV cache of 1,000,000,000,000 blocks of 16 tokens takes"),
        (["--block-size", "1000000000000"], "a KV cache of 1,024 blocks of 1,000,000,000,000 tokens takes"),
        (["--max-model-len", "40"], "--max-model-len 40: the model's context holds 32 tokens"),
        (["--max-model-len", "30", "--kv-blocks", "1"], "--max-model-len 30: the KV cache holds 16 tokens"),
        (["--dtype", "float16", "--device", "cpu"], "--dtype float16: works on a GPU only"),
    ],
)
def test_a_server_that_cannot_be_as_asked_does_not_start(
    folder: Path, capsys: pytest.CaptureFixture[str], options: list[str], message: str
) -> None:
    assert main(["serve", "--port", "0", "--model", str(folder), *options]) == 2
    assert message in capsys.readouterr().err.splitlines()[-1]


def test_a_server_takes_its_context_dtype_preemption_and_budget_from_its_options(folder: Path) -> None:
    from reference_impl.commands import serve

    options = ["--max-model-len", "20", "--dtype", "bfloat16", "--preemption", "swap", "--kv-blocks", "8"]
    engine, _, _ = serve._engine(serve._parser().parse_args(["--model", str(folder), *options]))
    assert engine.max_context == 20
    assert engine.cache.storage.k.dtype is torch.bfloat16  # type: ignore[attr-defined]
    assert (engine.config.preemption, engine.config.host_blocks) == ("swap", 8)
    assert 32 <= engine.config.token_budget <= 512


def test_an_absurd_context_costs_no_memory(folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    model = shutil.copytree(folder, tmp_path / "noise")
    config = json.loads((model / "config.json").read_text())
    (model / "config.json").write_text(json.dumps(config | {"max_position_embeddings": 10**12}))
    options = ["--prompt", "abc", "--max-tokens", "4"]
    assert run(capsys, "--model", str(model), *options) == run(capsys, "--model", str(folder), *options)
