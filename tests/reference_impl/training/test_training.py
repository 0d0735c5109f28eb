"""Training the course's pair: text, tokenizer, windows, optimizers, a run that may be interrupted, the command."""

from __future__ import annotations

import configparser
import csv
import io
import json
import math
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

from reference_impl.__main__ import main
from reference_impl.cache.recompute import Recompute
from reference_impl.checkpoints import weights
from reference_impl.commands import train_pair as command_module
from reference_impl.common.errors import WeightsError
from reference_impl.model.llama import Llama
from reference_impl.training.bpe import END, train_bpe
from reference_impl.training.corpus import Stream, encode
from reference_impl.training.distil import distillation_loss
from reference_impl.training.muon import Muon, orthogonalize
from reference_impl.training.recipe import TINY, Recipe
from reference_impl.training.score import bits_per_byte
from reference_impl.training.text import Document, documents
from reference_impl.training.trainer import Trainer, Windows, initialize, next_token_loss

MODULE = (
    '"""About {n}."""\n\nimport os\n\n\nclass Shape{n}:\n    """A shape."""\n\n    def area(self, width, height=1):\n'
    + ("        return width * height + {n}\n\n\ndef name(path):\n    return os.path.basename(path)\n")
)
PAGE = "Page {n}\n======\n\nThe function returns the area of shape {n}, in the unit of its sides.\n"


@pytest.fixture(autouse=True)
def _one_thread() -> None:
    torch.set_num_threads(1)


@pytest.fixture(scope="module")
def texts(tmp_path_factory: pytest.TempPathFactory) -> list[Document]:
    """A library of 80 modules and as many pages."""
    root = tmp_path_factory.mktemp("python")
    for folder in ("lib/test", "lib/site-packages", "docs"):
        (root / folder).mkdir(parents=True)
    for n in range(80):
        (root / f"lib/module_{n}.py").write_text(MODULE.format(n=n))
        (root / f"docs/page_{n}.rst.txt").write_text(PAGE.format(n=n))
    (root / "lib/test/test_os.py").write_text("def test(): pass\n")
    (root / "lib/site-packages/other.py").write_text("x = 1\n")
    (root / "lib/_sysconfigdata_x.py").write_text("prefix = '/home/someone'\n")
    (root / "lib/broken.py").write_text("def (:\n")
    (root / "lib/latin.py").write_bytes(b"# \xe9\n")
    return documents(root / "docs", root / "lib")


# --- Text -----------------------------------------------------------------------------------------------------------


def test_tests_other_packages_and_facts_about_the_machine_are_left_out(texts: list[Document]) -> None:
    names = {d.name for d in texts if d.kind == "code"}
    assert names == {f"module_{n}.py" for n in range(80)} | {"broken.py"}


def test_a_file_and_its_index_are_on_the_same_side_of_the_split(texts: list[Document]) -> None:
    side = {d.name: d.held_out for d in texts if d.kind == "code"}
    index = {d.name: d.held_out for d in texts if d.kind == "structured"}
    assert index == {name: held_out for name, held_out in side.items() if name != "broken.py"}
    assert 1 <= sum(side.values()) <= 10  # about one in twenty


def test_an_index_is_json_csv_or_ini_that_its_own_reader_reads(texts: list[Document]) -> None:
    forms = set()
    for document in (d for d in texts if d.kind == "structured"):
        if document.text.startswith("[\n"):
            forms.add("json")
            (row,) = [r for r in json.loads(document.text) if r["name"] == "area"]
            arguments = " ".join(row["arguments"])
        elif document.text.startswith("name,"):
            forms.add("csv")
            (row,) = [r for r in csv.DictReader(io.StringIO(document.text)) if r["name"] == "area"]
            arguments = row["arguments"]
        else:
            forms.add("ini")
            reader = configparser.ConfigParser()
            reader.read_string(document.text)
            row, arguments = dict(reader["area"]), reader["area"]["arguments"]
        assert (row["kind"], int(row["line"]), arguments) == ("function", 9, "self width height")
    assert forms == {"json", "csv", "ini"}


def test_without_documentation_the_docstrings_are_the_prose(tmp_path: Path) -> None:
    (tmp_path / "shapes.py").write_text(MODULE.format(n=7))
    (prose,) = [d for d in documents(None, tmp_path) if d.kind == "prose"]
    assert prose.text == "About 7.\n\nA shape."


def test_folders_without_text_are_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="expected Python's standard library there"):
        documents(None, tmp_path)
    (tmp_path / "a.py").write_text("x = 1\n")
    with pytest.raises(ValueError, match="expected Python's documentation in reST there"):
        documents(tmp_path, tmp_path)


def test_the_tokenizer_writes_any_text_and_is_the_same_every_time(texts: list[Document]) -> None:
    first, second = (train_bpe((d.text for d in texts), 320) for _ in range(2))
    assert first.vocab_size == 320
    assert first.backend.to_str() == second.backend.to_str()
    assert first.eos_ids == {0} == {first.backend.token_to_id(END)}
    text = "naïve 數 \x00 1234\n        return"
    assert first.decode(first.encode(text)) == text


# --- Windows --------------------------------------------------------------------------------------------------------


def test_targets_are_one_token_further_and_each_window_is_read_once_before_any_again() -> None:
    stream = Stream(np.arange(81, dtype=np.uint16))
    seen = []
    for step in range(4):
        inputs, targets = stream.windows(step, 2, 10, seed=5)
        assert torch.equal(targets, inputs + 1)
        seen += inputs[:, 0].tolist()
    assert sorted(seen) == [0, 10, 20, 30, 40, 50, 60, 70]
    again = [int(row[0]) for step in range(4, 8) for row in stream.windows(step, 2, 10, seed=5)[0]]
    assert sorted(again) == sorted(seen)
    assert again != seen


def test_a_text_too_short_for_one_step_is_refused() -> None:
    with pytest.raises(ValueError, match="20 tokens of text are too few for a step of 2 windows of 10"):
        Stream(np.arange(20, dtype=np.uint16)).windows(0, 2, 10, 0)


def test_documents_are_separated_by_the_end_token(texts: list[Document]) -> None:
    tokenizer = train_bpe((d.text for d in texts), 320)
    stream = encode(texts[:3], tokenizer)
    assert (stream.tokens == 0).sum() == 3
    assert tokenizer.decode(stream.tokens.tolist()) == "".join(d.text for d in texts[:3])


def test_a_training_batch_gives_the_logits_of_each_window_alone() -> None:
    model = initialize(Llama(TINY.target.config), 0)
    for parameter in model.parameters():
        parameter.add_(0.1)  # what a layer adds starts at 0
    inputs = torch.arange(48).view(3, 16)
    found = model(Windows(inputs))
    for i, row in enumerate(inputs.tolist()):
        torch.testing.assert_close(found[16 * i : 16 * i + 16], model(Recompute(row)))


# --- Optimizers and schedule ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("shape", [(24, 24), (16, 64), (64, 16)])
def test_orthogonalizing_keeps_directions_and_sets_singular_values_to_about_1(shape: tuple[int, int]) -> None:
    matrices = torch.randn(3, *shape, generator=torch.Generator().manual_seed(1), dtype=torch.float64)
    for matrix, found in zip(matrices, orthogonalize(matrices), strict=True):
        u, s, vt = torch.linalg.svd(matrix, full_matrices=False)
        along = torch.diagonal(u.T @ found @ vt.T)
        kept = s > 0.05 * s[0]  # five steps lift what is not tiny
        assert (along[kept] > 0.65).all()
        assert (along < 1.25).all()


def test_a_fused_matrix_is_orthogonalized_part_by_part() -> None:
    generator = torch.Generator().manual_seed(2)
    fused, gradient = torch.zeros(24, 8), torch.randn(24, 8, generator=generator)
    parts = [torch.zeros(16, 8), torch.zeros(8, 8)]
    fused.grad = gradient.clone()
    for part, its_gradient in zip(parts, gradient.split([16, 8]), strict=True):
        part.grad = its_gradient.clone()
    Muon([fused], [[16, 8]]).step(0.1)
    Muon(parts, [[16], [8]]).step(0.1)
    torch.testing.assert_close(fused, torch.cat(parts))


def test_rates_rise_stay_and_fall_to_almost_nothing() -> None:
    recipe = Recipe(TINY.target.config, steps=100, rates=((0, 0.2), (4, 1.0), (50, 1.0), (100, 0.0)))
    assert [recipe.rate(step) for step in (0, 3, 4, 30, 50)] == pytest.approx([0.2, 0.8, 1.0, 1.0, 1.0])
    assert (recipe.rate(75), recipe.rate(99)) == pytest.approx((0.5, 0.02))
    assert [recipe.context(step) for step in (0, 84, 85)] == [256, 256, 512]


def test_distillation_is_best_where_draft_and_target_agree() -> None:
    target = initialize(Llama(TINY.target.config), 0)
    batch = Windows(torch.arange(32).view(2, 16))
    logits = target(batch).requires_grad_(True)
    loss = distillation_loss(target)(batch, logits, torch.empty(0))
    loss.backward()
    assert logits.grad is not None
    assert logits.grad.abs().max() < 1e-6
    p = target(batch).softmax(-1)
    assert loss.item() == pytest.approx(-(p * p.log()).sum(-1).mean().item(), rel=1e-5)


# --- Runs -----------------------------------------------------------------------------------------------------------


def small_stream() -> Stream:
    return Stream(np.random.default_rng(0).integers(1, 50, 2000).cumsum().astype(np.uint16) % 320)


def same(a: Llama, b: Llama) -> bool:
    return all(torch.equal(x, y) for x, y in zip(a.parameters(), b.parameters(), strict=True))


@pytest.mark.parametrize("stop", [6, 8])  # just after a checkpoint, and between two
def test_a_run_interrupted_and_resumed_equals_one_that_was_not(tmp_path: Path, stop: int) -> None:
    whole = Trainer(TINY.target, small_stream()).train(tmp_path / "whole.pt")
    n_calls = 0

    def interrupted(batch: Windows, logits: torch.Tensor, targets: torch.Tensor) -> torch.Tensor:
        nonlocal n_calls
        n_calls += 1
        if n_calls > stop:
            raise KeyboardInterrupt
        return next_token_loss(batch, logits, targets)

    with pytest.raises(KeyboardInterrupt):
        Trainer(TINY.target, small_stream(), interrupted).train(tmp_path / "part.pt", every=3)
    resumed = Trainer(TINY.target, small_stream())
    model = resumed.train(tmp_path / "part.pt", every=3)
    assert same(whole, model)
    assert resumed.step == TINY.target.steps
    assert not list(tmp_path.glob("*.part"))


def test_training_lowers_the_loss(tmp_path: Path) -> None:
    recipe = replace(TINY.target, steps=40, rates=((0, 1.0), (40, 0.0)))
    trainer = Trainer(recipe, Stream(np.tile(np.arange(10, 50, dtype=np.uint16), 100)))
    first = trainer.one_step()
    trainer.train(tmp_path / "run.pt")
    assert first == pytest.approx(math.log(320), abs=0.1)  # nothing is known yet
    inputs, targets = trainer.stream.windows(0, 2, 32, 0)
    batch = Windows(inputs)
    assert trainer.loss(batch, trainer.model(batch), targets.reshape(-1)).item() < first - 2


def test_a_draft_starts_as_the_first_layer_of_its_target() -> None:
    target = initialize(Llama(replace(TINY.target.config, n_kv_heads=1)), 3)
    draft = Trainer(TINY.draft, small_stream(), start=target.views()).model
    assert torch.equal(draft.embed, target.embed)
    assert torch.equal(draft.layers[0].wqkv.weight, target.layers[0].wqkv.weight)
    assert not torch.equal(draft.embed, Trainer(TINY.draft, small_stream()).model.embed)


def test_another_runs_checkpoint_is_refused_and_kept(tmp_path: Path) -> None:
    path = tmp_path / "run.pt"
    Trainer(TINY.target, small_stream()).train(path, until=1)
    with pytest.raises(WeightsError, match=r"run\.pt: belongs to another run"):
        Trainer(replace(TINY.target, seed=9), small_stream()).train(path)
    path.write_bytes(path.read_bytes()[:100])
    with pytest.raises(WeightsError, match=r"run\.pt: expected a checkpoint of this command"):
        Trainer(TINY.target, small_stream()).train(path)


def test_a_model_that_knows_nothing_needs_the_bits_of_its_vocabulary(texts: list[Document]) -> None:
    tokenizer = train_bpe((d.text for d in texts), 256 + 1)  # bytes and the end token
    model = initialize(Llama(replace(TINY.target.config, vocab_size=257)), 0)
    model.embed.zero_()  # all logits 0
    stream = Stream(np.full(65, tokenizer.encode("a")[0], dtype=np.uint16))
    assert bits_per_byte(model, stream, tokenizer, window=32) == pytest.approx(math.log2(257))


def test_the_command_makes_a_pair_that_loads_and_goes_on_where_it_stopped(
    texts: list[Document], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(command_module, "documents", lambda docs: texts)
    command = ["train-pair", "--tiny", "--docs", str(tmp_path), "--out", str(tmp_path / "out")]
    assert main(command) == 0
    assert "course-target, course-draft and MODEL_CARD.md" in capsys.readouterr().out
    target, tokenizer = weights.load(tmp_path / "out/course-target")
    draft, its_tokenizer = weights.load(tmp_path / "out/course-draft")
    assert (target.config, draft.config) == (TINY.target.config, TINY.draft.config)
    assert tokenizer.backend.get_vocab() == its_tokenizer.backend.get_vocab()
    card = (tmp_path / "out/MODEL_CARD.md").read_text()
    for fact in (f"{target.config.n_params:,}", "bits per byte, held-out structured", "PSF License", "--out FOLDER"):
        assert fact in card
    made = {path: path.stat().st_mtime_ns for path in (tmp_path / "out/work").glob("*.pt")}
    assert main(command) == 0
    assert {path: path.stat().st_mtime_ns for path in made} == made


def test_without_documentation_the_command_says_what_to_do(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(command_module, "find_docs", lambda: None)
    assert main(["train-pair", "--out", str(tmp_path)]) == 2
    assert "install Debian's python3.11-doc, name them with --docs FOLDER, or take --docstrings" in (
        capsys.readouterr().err
    )
