"""The course's own pair as shipped: what the recipe says, greedy answers unchanged by drafts, acceptance by kind."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest
import torch
from serving_oracle import one_thread  # noqa: F401  (a fixture that is used by being here)

from reference_impl.__main__ import main
from reference_impl.benchmarks.harness import report
from reference_impl.benchmarks.harness.result import Result
from reference_impl.benchmarks.speculation import measure
from reference_impl.benchmarks.speculation import table as speculation_table
from reference_impl.benchmarks.speculation.prompts import KINDS, prompt_ids, prompts
from reference_impl.cache.recompute import Recompute
from reference_impl.checkpoints import weights
from reference_impl.checkpoints.weights import Loaded
from reference_impl.engine.config import EngineConfig
from reference_impl.engine.engine import Engine
from reference_impl.engine.request import Request
from reference_impl.model.llama import Llama
from reference_impl.speculative.draft_model import ModelDraft
from reference_impl.speculative.speculator import DraftLength, Speculator
from reference_impl.training.corpus import encode
from reference_impl.training.recipe import COURSE
from reference_impl.training.score import bits_per_byte
from reference_impl.training.text import Document

CODE = '''def mean(values):
    """Return the mean of a sequence of numbers."""
    if not values:
        raise ValueError("mean requires at least one value")
    return sum(values) / len(values)
'''


@pytest.fixture(scope="module")
def pair() -> tuple[Loaded, Llama]:
    return weights.load("course-target", torch.float64), weights.load("course-draft", torch.float64).model


def score(target: Llama, pair: tuple[Loaded, Llama]) -> float:
    """Bits per byte of CODE."""
    stream = encode([Document("code", "mean.py", CODE)], pair[0].tokenizer)
    return bits_per_byte(target, stream, pair[0].tokenizer, len(stream.tokens) - 1)


# --- What was shipped -----------------------------------------------------------------------------------------------


def test_the_pair_is_what_the_recipe_says_in_bfloat16_and_small() -> None:
    folder = weights.resolve("course-target").parent
    card = (folder / "MODEL_CARD.md").read_text(encoding="utf-8")
    for name, recipe in (("course-target", COURSE.target), ("course-draft", COURSE.draft)):
        config, _ = weights.read(weights.resolve(name))
        assert config == recipe.config
        assert f"{config.n_params:,}" in card
        assert f"| {name} | {recipe.steps:,} | {recipe.tokens:,} | {recipe.seed} |" in card
        assert {bits for _, bits in weights.stored_types(name).values()} == {16}
    assert sum(path.stat().st_size for path in folder.rglob("*")) < 25e6


def test_target_and_draft_share_one_tokenizer_and_the_target_knows_more(pair: tuple[Loaded, Llama]) -> None:
    target, draft = pair
    assert target.tokenizer.backend.to_str() == weights.load("course-draft").tokenizer.backend.to_str()
    assert score(target.model, pair) < score(draft, pair) < 3 < math.log2(257)


def test_fewer_bits_cost_more() -> None:
    """Never quantized before shipping, so that a lesson may do it; rows rounded to 15, 7 and 3 levels."""
    tokenizer = weights.load("course-target").tokenizer
    texts = [Document(kind, "prompt", text) for kind in ("code", "prose") for text in prompts(kind)]
    stream = encode(texts, tokenizer)
    found = []
    for levels in (None, 7, 3, 1):
        model = weights.load("course-target").model
        for name, view in model.views().items():
            if levels and "proj" in name:
                scales = view.abs().amax(dim=1, keepdim=True) / levels
                view.copy_((view / scales).round() * scales)
        found.append(bits_per_byte(model, stream, tokenizer, 256))
    assert found == sorted(found)
    assert found[0] < 1.7
    assert found[3] > found[0] + 0.5


# --- Drafts change no answer ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", KINDS)
def test_greedy_answers_with_the_draft_are_greedy_answers_and_each_row_is_its_solo_run(
    pair: tuple[Loaded, Llama], kind: str
) -> None:
    target, draft = pair
    prompts = prompt_ids(kind, target.tokenizer, 48)[:3]
    requests = [Request(i, tuple(prompt), 24) for i, prompt in enumerate(prompts)]
    speculator = Speculator(ModelDraft.for_llama(draft, 24), DraftLength(4))
    found = Engine.for_llama(target.model, EngineConfig(n_blocks=24), strategy=speculator).run(requests)
    for request in requests:
        text = list(request.prompt) + list(found[request.id].tokens)
        rows = target.model(Recompute(text[:-1]))[len(request.prompt) - 1 :]
        assert rows.argmax(-1).tolist() == list(found[request.id].tokens)
    assert speculator.stats.n_passes < 3 * 23  # and it was worth something


def test_the_command_writes_the_same_with_the_draft(capsys: pytest.CaptureFixture[str]) -> None:
    command = ["generate", "--model", "course-target", "--prompt", "def read(self, path):", "--max-tokens", "24"]
    assert main(command) == 0
    plain = capsys.readouterr().out
    assert main([*command, "--draft", "course-draft"]) == 0
    out, err = capsys.readouterr()
    assert out == plain
    assert err.startswith("drafts: ")


# --- What is measured -----------------------------------------------------------------------------------------------


def test_the_draft_is_accepted_about_as_often_as_the_committed_table_says() -> None:
    target, draft = weights.load("course-target"), weights.load("course-draft").model
    found = measure.by_kind(target, draft, k=4, n_tokens=32)
    assert found.keys() == set(KINDS)
    assert all(0.4 < acceptance.alpha < 0.95 for acceptance in found.values())
    assert all(acceptance.tokens_per_pass > 1.5 for acceptance in found.values())


def test_one_command_prints_the_table_by_kind_of_text(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    small = replace(speculation_table.EFFORT["small"][1], n_tokens=18, n_prompts=1, n_prompt=32, batches=(1, 2))
    monkeypatch.setitem(speculation_table.EFFORT, "small", (small, small))
    command = ["speculation-table", "--target", "course-target", "--draft", "course-draft", "--quick", "--json"]
    assert main(command) == 0
    result = Result.from_json(capsys.readouterr().out)
    acceptance, speedup, lengths, batch = result.sections
    for section in (acceptance, speedup, lengths):
        assert [row["kind"] for row in section.rows] == list(KINDS)
    assert all(row["same"] == "1 of 1" for row in speedup.rows)
    assert [row["batch"] for row in batch.rows] == [1, 2]
    assert result.hardware["name"]
    text = report.text(result)
    for heading in ("α at position 1 to 4", "by the formula", "predicted ×", "measured ×", "best k"):
        assert heading in text


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--draft", "ngram"], "speculation-table: --draft needs a --target"),
        (["--target", "course-target", "--draft", "/no/such"], "speculation-table: /no/such: no such model"),
        (["--target", "/no/such"], "speculation-table: /no/such: no such model"),
    ],
)
def test_bad_options_of_the_table_are_one_line(
    options: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["speculation-table", *options]) == 2
    assert capsys.readouterr().err.splitlines()[-1].startswith(message)
