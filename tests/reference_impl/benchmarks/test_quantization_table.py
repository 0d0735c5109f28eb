"""The evaluation: scores from their definition, tasks whose answers are right, a table that resumes, its command."""

from __future__ import annotations

import random
import re
from pathlib import Path

import pytest
import torch

from reference_impl.__main__ import main
from reference_impl.benchmarks.harness.result import Result
from reference_impl.benchmarks.quality import table
from reference_impl.benchmarks.quality.evaluate import Item, WindowScore, accuracy, score, together
from reference_impl.benchmarks.quality.held_out import Amount, HeldOut, held_out, windows
from reference_impl.benchmarks.quality.table import RECIPES, label, measure, pairs_as_predicted, predicted_order
from reference_impl.benchmarks.quality.tasks import tasks
from reference_impl.bounds.config import ModelConfig
from reference_impl.cache.recompute import Recompute
from reference_impl.checkpoints import weights
from reference_impl.checkpoints.folder import save
from reference_impl.checkpoints.tokenizer import Tokenizer
from reference_impl.commands.measure import quantization_table as table_command
from reference_impl.model.llama import Llama
from reference_impl.quantization.calibrate import Recipe, quantize_layers
from reference_impl.quantization.forward import hidden_states
from reference_impl.training.bpe import train_bpe
from reference_impl.training.text import Document

AMOUNT = Amount(calibration=4, code=3, prose=2, length=32)
FEW = (Recipe("rounding", 8, 16), Recipe("gptq", 4, 16), Recipe("awq", 3, 16))


def made_up(name: str, seed: int, lines: int = 900) -> list[Document]:
    numbers = random.Random(seed)
    code = "".join(f"    value_{numbers.randrange(50)} = call({numbers.randrange(999)})\n" for _ in range(lines))
    return [Document("code", name, code), Document("prose", name, "The call returns the value of its argument. " * 60)]


@pytest.fixture(scope="module")
def texts() -> HeldOut:
    return HeldOut(calibration=tuple(made_up("a.py", 0)), evaluation=tuple(made_up("b.py", 1)))


@pytest.fixture(scope="module")
def tokenizer(texts: HeldOut) -> Tokenizer:
    return train_bpe([d.text for d in texts.calibration], 300)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory, tokenizer: Tokenizer) -> Path:
    """A tiny model on disk, its weights made up."""
    config = ModelConfig("tiny", 2, 32, 4, 2, 8, 48, 300, tied=True, max_context=512)
    model = Llama(config).randomize(torch.Generator().manual_seed(0), 0.2)
    path = tmp_path_factory.mktemp("models") / "tiny"
    save(path, config, model.views().items(), tokenizer)
    return path


# --- scores


def test_a_score_is_what_its_definition_says(folder: Path) -> None:
    reference, tokenizer = weights.load(folder, torch.float64)
    other = weights.load(folder, torch.float64).model
    quantize_layers(other, Recipe("rounding", 3, 16), progress=False)
    pieces = [tokenizer.encode("value_3 = call(17)\n    value_4"), tokenizer.encode("The call returns the value")]
    found = together(score(other, hidden_states(other, pieces), hidden_states(reference, pieces), pieces, tokenizer))

    nats, kl, same, n_bytes, n = 0.0, 0.0, 0, 0, 0
    for piece in pieces:
        p = reference(Recompute(piece)).softmax(-1)[:-1]
        q = other(Recompute(piece)).softmax(-1)[:-1]
        for i, token in enumerate(piece[1:]):
            nats -= float(q[i, token].log())
            kl += float((p[i] * (p[i] / q[i]).log()).sum())
            same += int(p[i].argmax() == q[i].argmax())
            n_bytes += len(tokenizer.decode([token]).encode())
            n += 1
    assert found.n_tokens == n
    assert found.perplexity == pytest.approx(torch.tensor(nats / n).exp().item(), rel=1e-5)
    assert found.bits_per_byte == pytest.approx(nats / 0.6931471805599453 / n_bytes)
    assert found.kl == pytest.approx(kl / n)
    assert found.kl > 0.001
    assert found.agreement == same / n


def test_a_model_compared_with_itself_has_lost_nothing(folder: Path) -> None:
    model, tokenizer = weights.load(folder)
    pieces = [tokenizer.encode("value_3 = call(17)")]
    states = hidden_states(model, pieces)
    found = together(score(model, states, states, pieces, tokenizer))
    assert (found.kl, found.agreement, found.kl_error) == (0, 1, 0)
    with pytest.raises(ValueError, match="at least two tokens"):
        score(model, states, states, [[5]], tokenizer)


def test_windows_add_up_by_their_tokens() -> None:
    scores = [WindowScore(10, 20, 10.0, 1.0, 10), WindowScore(30, 60, 30.0, 9.0, 15)]
    found = together(scores)
    assert found.kl == pytest.approx(0.25)
    assert found.agreement == pytest.approx(25 / 40)
    assert found.perplexity == pytest.approx(2.718281828)
    assert found.kl_error == pytest.approx(0.1)  # means 0.1 and 0.3: half their distance, for two windows


def test_accuracy_counts_the_scored_tokens_that_come_first(folder: Path) -> None:
    model, _ = weights.load(folder)
    tokens = [5, 9, 70, 41, 200]
    best = model(Recompute(tokens)).argmax(-1).tolist()
    right = Item([5, 9, best[1], 41], [2])
    wrong = Item([5, 9, (best[1] + 1) % 300], [2])
    assert accuracy(model, [right]) == 1
    assert accuracy(model, [right, wrong]) == 0.5


# --- text and tasks


def test_the_held_out_split_is_disjoint_and_files_that_were_trained_on_are_left_out() -> None:
    documents = [d for i in range(200) for d in made_up(f"pkg/module_{i}.py", i, lines=3)]
    found = held_out(documents)
    names = [{d.name for d in part} for part in (found.calibration, found.evaluation)]
    assert names[0]
    assert names[1]
    assert not names[0] & names[1]
    assert all(d.held_out for d in (*found.calibration, *found.evaluation))
    assert {d.kind for d in found.evaluation} == {"code", "prose"}
    assert found.digest == held_out(documents).digest


def test_windows_are_drawn_by_the_seed_and_do_not_overlap(texts: HeldOut, tokenizer: Tokenizer) -> None:
    first = windows(texts.evaluation, tokenizer, "code", 5, 40, seed=0)
    assert first == windows(texts.evaluation, tokenizer, "code", 5, 40, seed=0)
    assert first != windows(texts.evaluation, tokenizer, "code", 5, 40, seed=1)
    assert [len(window) for window in first] == [40] * 5
    with pytest.raises(ValueError, match="9999 windows of 40 tokens of code are wanted"):
        windows(texts.evaluation, tokenizer, "code", 9999, 40, seed=0)


def test_every_answer_of_a_task_is_right_and_can_be_known(texts: HeldOut, tokenizer: Tokenizer) -> None:
    made = tasks(tokenizer, texts.evaluation, max_context=512)
    answers = {name: [[item.tokens[i] for i in item.scored] for item in items] for name, items in made.items()}
    for item, answer in zip(made["arithmetic"], answers["arithmetic"], strict=True):
        sums = re.findall(r"(\d+) \+ (\d+) = (\d+)\n", tokenizer.decode(item.tokens))
        assert len(sums) == 12
        assert all(int(a) + int(b) == int(c) for a, b, c in sums)
        assert tokenizer.decode(answer) == "".join(c for _, _, c in sums[4:])
    for item, answer in zip(made["copying"], answers["copying"], strict=True):
        first, second = re.fullmatch(r"copy:(.*)\ncopy:(.*)", tokenizer.decode(item.tokens)).groups()
        assert first == second == tokenizer.decode(answer)
    for item, answer in zip(made["code"], answers["code"], strict=True):
        assert tokenizer.decode(item.tokens) in texts.evaluation[0].text
        assert tokenizer.decode(item.tokens).splitlines()[8] == tokenizer.decode(answer)
    for item, answer in zip(made["long context"], answers["long context"], strict=True):
        told = re.findall(r"The code of room (\d+) is (\d+)\.\n", tokenizer.decode(item.tokens))
        assert len(told) == 12
        assert sorted(told[:6]) == sorted(told[6:])
        assert tokenizer.decode(answer) == "".join(code for _, code in told[6:])
        assert len(item.tokens) <= 512
    assert made == tasks(tokenizer, texts.evaluation, max_context=512)
    with pytest.raises(ValueError, match="20,000 characters of code"):
        tasks(tokenizer, made_up("short.py", 0, lines=3))


# --- the table


def test_the_predicted_order_goes_by_grid_and_then_by_method() -> None:
    assert predicted_order() == [
        "int8 g128 rounding",
        "int4 g32 gptq", "int4 g32 awq", "int4 g32 rounding",
        "int4 g128 gptq", "int4 g128 awq", "int4 g128 rounding",
        "int3 g128 gptq", "int3 g128 awq", "int3 g128 rounding",
    ]  # fmt: skip
    assert set(predicted_order()) == {label(recipe) for recipe in RECIPES}


def test_pairs_in_the_predicted_order_are_counted() -> None:
    rows = [{"weights": name, "kl": kl} for name, kl in [("a", 0.1), ("b", 0.3), ("c", 0.2), ("float", 0.0)]]
    assert pairs_as_predicted(rows, ["a", "b", "c"]) == (2, 3)


def test_a_table_has_a_row_for_the_float_model_and_each_recipe(folder: Path, texts: HeldOut, tmp_path: Path) -> None:
    section = measure(
        str(folder),
        texts,
        tmp_path,
        FEW,
        AMOUNT,
        speed=lambda source, recipes: {None: 100.0, (8, 16): 180.0, (4, 16): 250.0},
    )
    rows = {row["weights"]: row for row in section.rows}
    assert list(rows) == ["float", "int8 g16 rounding", "int4 g16 gptq", "int3 g16 awq"]
    assert rows["float"]["kl"] == 0
    assert rows["float"]["agreement"] == 100
    assert rows["float"]["bits"] == 16
    assert [rows[name]["bits"] for name in list(rows)[1:]] == [9, 5, 4]  # a 16-bit scale for 16 weights
    assert 0 < rows["int8 g16 rounding"]["kl"] < rows["int4 g16 gptq"]["kl"] < rows["int3 g16 awq"]["kl"]
    assert [row["tokens_per_second"] for row in section.rows] == [100.0, 180.0, 250.0, None]  # 3 bits: no kernel
    n_linear = 2 * (32 * 64 + 32 * 32 + 32 * 96 + 48 * 32)
    assert rows["float"]["linear_mb"] == pytest.approx(2 * n_linear / 1e6)
    assert all(set(row) == {*table.COLUMNS, "cpu_seconds"} for row in section.rows)
    assert "measured by KL: 3 of 3 pairs" in "\n".join(section.notes)


def test_an_interrupted_table_goes_on_with_the_rows_that_are_left(
    folder: Path, texts: HeldOut, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = measure(str(folder), texts, tmp_path / "whole", FEW, AMOUNT)
    quality = table._quality
    calls: list[int] = []

    def interrupted(*arguments: object) -> dict[str, object]:
        calls.append(1)
        if len(calls) == 3:
            raise KeyboardInterrupt
        return quality(*arguments)

    monkeypatch.setattr(table, "_quality", interrupted)
    with pytest.raises(KeyboardInterrupt):
        measure(str(folder), texts, tmp_path / "cut", FEW, AMOUNT)
    found = measure(str(folder), texts, tmp_path / "cut", FEW, AMOUNT)
    assert len(calls) == 5  # two rows, the one that was cut, and the two that were left
    for rows in (found.rows, whole.rows):
        assert all(row.pop("cpu_seconds") >= 0 for row in rows)
    assert found.rows == whole.rows


def test_the_command_predicts_first_then_measures_and_writes_json(
    folder: Path, texts: HeldOut, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("LLM_COURSE_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(table_command, "held_out", lambda: texts)
    monkeypatch.setattr(table_command, "RECIPES", FEW)
    monkeypatch.setattr(
        table_command, "decode_rates", lambda source, recipes: dict.fromkeys([None, (8, 16), (4, 16), (3, 16)], 55.0)
    )
    monkeypatch.setattr(table, "amount_for", lambda config: AMOUNT)
    assert main(["quantization-table", "--models", str(folder), "--output", str(tmp_path)]) == 0
    shown = capsys.readouterr().out
    assert shown.index("Predicted order, best first") < shown.index("tiny (0.0 M parameters) quantized")
    (written,) = tmp_path.glob("*-quantization.json")
    result = Result.from_json(written.read_text())
    assert result.hardware["name"]
    assert result.versions["torch"] == torch.__version__
    assert result.settings["text"] == texts.digest
    assert result.section("quantization tiny").rows[0]["weights"] == "float"
    speeds = {row["tokens_per_second"] for row in result.section("quantization tiny").rows}
    assert speeds == ({55.0} if result.settings["quiet"] else {None})  # a busy machine has no speed to quote
    assert list((tmp_path / "cache").rglob("row-*.json")) == []  # what was kept for a resume is gone


def test_a_model_that_is_not_there_is_an_error_before_the_work_begins(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["quantization-table", "--models", "no-such-model"]) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert "no-such-model: no such model" in captured.err
