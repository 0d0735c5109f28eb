"""`generate --draft`: the text of `generate`, written by rounds."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
import tokenizers
import torch
from model_files import TINY, random_model
from tokenizers import decoders, models, pre_tokenizers, trainers

from reference_impl.__main__ import main
from reference_impl.checkpoints import weights
from reference_impl.checkpoints.tokenizer import Tokenizer
from reference_impl.decoding.sampling import SamplingParams
from reference_impl.engine.generate import generate
from reference_impl.speculative.answer import generate_with_drafts, summary
from reference_impl.speculative.draft_model import ModelDraft
from reference_impl.speculative.drafts import DraftSource
from reference_impl.speculative.ngram import NgramDraft
from reference_impl.speculative.speculator import DraftLength, SpeculationStats, Speculator

PROMPT = [3, 1, 4, 1, 5]
LETTERS = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWX"


def save(path: Path, letters: str = LETTERS) -> Path:
    """A model with random weights and one token for each letter."""
    backend = tokenizers.Tokenizer(models.BPE())
    backend.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    backend.decoder = decoders.ByteLevel()
    backend.train_from_iterator([], trainers.BpeTrainer(initial_alphabet=list(letters), vocab_size=len(letters)))
    config = replace(TINY, vocab_size=len(letters))
    weights.save(path, config, random_model(config).views().items(), Tokenizer(backend))
    return path


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return save(tmp_path_factory.mktemp("models") / "noise")


@pytest.mark.parametrize("draft", ["ngram", "itself"])
@pytest.mark.parametrize("max_tokens", [1, 2, 20, 27])
def test_greedy_tokens_are_those_of_generate(draft: str, max_tokens: int) -> None:
    model = random_model(dtype=torch.float64)
    source: DraftSource = NgramDraft() if draft == "ngram" else ModelDraft.for_llama(model, 2)
    tokens = generate_with_drafts(model, PROMPT, SamplingParams(), max_tokens, Speculator(source))
    assert list(tokens) == list(generate(model, PROMPT, SamplingParams(), max_tokens))


def test_looked_up_drafts_keep_sampled_tokens_as_they_are() -> None:
    model, params = random_model(dtype=torch.float64), SamplingParams(1.0, seed=3)
    tokens = list(generate_with_drafts(model, PROMPT, params, 20, Speculator(NgramDraft())))
    assert tokens == list(generate(model, PROMPT, params, 20))


def test_the_answer_ends_before_an_end_token_inside_a_draft() -> None:
    model = random_model(dtype=torch.float64)
    plain = list(generate(model, PROMPT, SamplingParams(), 20))
    end = next(i for i in range(5, 20) if plain[i] not in plain[:i])
    speculator = Speculator(ModelDraft.for_llama(model, 2), DraftLength(19))
    tokens = generate_with_drafts(model, PROMPT, SamplingParams(), 20, speculator, frozenset([plain[end]]))
    assert list(tokens) == plain[:end]


def test_a_request_that_does_not_fit_is_refused_before_anything_runs() -> None:
    with pytest.raises(ValueError, match="5 prompt tokens and 28 new ones exceed tiny's context of 32"):
        generate_with_drafts(random_model(), PROMPT, SamplingParams(), 28, Speculator(NgramDraft()))


def test_the_summary_counts_accepted_drafts_and_tokens_a_pass() -> None:
    stats = SpeculationStats(n_rounds=2, n_drafted=8, n_passes=4, n_tokens=10, judged=[2, 2, 1], accepted=[2, 1, 1])
    assert summary(stats) == "drafts: 4 of 8 drafted tokens accepted, 2.50 tokens a pass"
    assert summary(SpeculationStats()) == "drafts: none were needed"


def run(capsys: pytest.CaptureFixture[str], folder: Path, *options: str) -> tuple[int, str, str]:
    status = main(["generate", "--model", str(folder), "--prompt", "abc", "--max-tokens", "17", *options])
    out, err = capsys.readouterr()
    return status, out, err


def test_the_command_writes_the_same_text_and_says_what_the_drafts_brought(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    plain = run(capsys, folder)
    looked_up = run(capsys, folder, "--draft", "ngram")
    assert looked_up[:2] == plain[:2]
    assert looked_up[2].startswith("drafts: ")
    itself = run(capsys, folder, "--draft", str(folder), "--draft-tokens", "3")
    assert itself == (0, plain[1], "drafts: 12 of 12 drafted tokens accepted, 4.00 tokens a pass\n")


def test_a_draft_with_another_tokenizer_is_refused(
    folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    other = save(tmp_path / "other", LETTERS[::-1].replace("a", "Z"))
    status, out, err = run(capsys, folder, "--draft", str(other))
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
    status, out, err = run(capsys, folder, *options)
    assert (status, out) == (2, "")
    assert err.startswith(message)
    assert err.count("\n") == 1


# --- The server -----------------------------------------------------------------------------------------------------


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
    other = save(tmp_path / "other", LETTERS[::-1].replace("a", "Z"))
    assert main(["serve", "--port", "0", "--model", str(folder), "--draft", str(other)]) == 2
    assert f"--draft {other}: its tokenizer is not the model's" in capsys.readouterr().err
