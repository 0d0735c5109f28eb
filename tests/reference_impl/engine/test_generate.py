"""Generation with one request: the same tokens as recomputing everything, the right end, and the command around it."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
import tokenizers
import torch
from model_files import TINY, random_model
from tokenizers import decoders, models, pre_tokenizers, trainers

from reference_impl.__main__ import main
from reference_impl.checkpoints import weights
from reference_impl.checkpoints.tokenizer import Tokenizer
from reference_impl.decoding.sampling import SamplingParams, processed_probs, sample
from reference_impl.engine.generate import generate, stream_text
from reference_impl.model.llama import Llama, Recompute

PROMPT = [3, 1, 4, 1, 5]


def recomputed(model: Llama, prompt: list[int], params: SamplingParams, n_tokens: int) -> list[int]:
    """The whole sequence again for every token, without a cache."""
    tokens, numbers = list(prompt), params.generator()
    for _ in range(n_tokens):
        probs = processed_probs(model(Recompute(tokens))[-1], params)
        tokens.append(int(probs.argmax()) if params.greedy else int(sample(probs, numbers.random())))
    return tokens[len(prompt) :]


@pytest.mark.parametrize("params", [SamplingParams(), SamplingParams(0.8, seed=3), SamplingParams(1.5, 20, 0.9, 4)])
def test_a_cache_gives_the_tokens_of_recomputing_everything(params: SamplingParams) -> None:
    model = random_model(dtype=torch.float64)
    assert list(generate(model, PROMPT, params, 20)) == recomputed(model, PROMPT, params, 20)


def test_generation_ends_before_an_end_token() -> None:
    model = random_model(dtype=torch.float64)
    tokens = recomputed(model, PROMPT, SamplingParams(), 20)
    end = next(i for i in range(5, 20) if tokens[i] not in tokens[:i])
    assert list(generate(model, PROMPT, SamplingParams(), 20, frozenset([tokens[end]]))) == tokens[:end]


def test_prompt_and_answer_may_fill_the_context_and_no_more() -> None:
    model = random_model()  # context 32
    assert len(list(generate(model, PROMPT, SamplingParams(), 27))) == 27
    with pytest.raises(ValueError, match="5 prompt tokens and 28 new ones exceed tiny's context of 32"):
        generate(model, PROMPT, SamplingParams(), 28)


def test_an_empty_prompt_and_no_tokens_are_refused_before_anything_runs() -> None:
    with pytest.raises(ValueError, match="the prompt has no tokens"):
        generate(random_model(), [], SamplingParams(), 5)
    with pytest.raises(ValueError, match="max_tokens must be at least 1, got 0"):
        generate(random_model(), PROMPT, SamplingParams(), 0)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A model with random weights and a tokenizer of 50 tokens; its answers are noise."""
    backend = tokenizers.Tokenizer(models.BPE())
    backend.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    backend.decoder = decoders.ByteLevel()
    letters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWX"
    backend.train_from_iterator([], trainers.BpeTrainer(initial_alphabet=list(letters), vocab_size=50))
    path = tmp_path_factory.mktemp("models") / "noise"
    weights.save(path, TINY, random_model().views().items(), Tokenizer(backend))
    return path


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
