"""`python -m reference_impl train-pair`: text, tokenizer, target, draft, scores, model card, in one resumable command.

What is done is kept in the folder WORK below the output: run the command again and it goes on where it stopped. The
shipped pair was made by this command with its defaults.
"""

from __future__ import annotations

import hashlib
import platform
from pathlib import Path

import numpy as np
import torch

from reference_impl.checkpoints.tokenizer import Tokenizer
from reference_impl.checkpoints.weights import save
from reference_impl.common import cli
from reference_impl.model.llama import Llama
from reference_impl.training import card, recipe
from reference_impl.training.bpe import train_bpe
from reference_impl.training.corpus import Stream, encode
from reference_impl.training.distil import distillation_loss
from reference_impl.training.recipe import Pair
from reference_impl.training.score import bits_per_byte
from reference_impl.training.text import KINDS, Document, documents, find_docs
from reference_impl.training.trainer import Trainer

WORK = "work"  # checkpoints and the tokenizer, while a run is unfinished


def train_pair(pair: Pair, texts: list[Document], out: Path, every: int = 100) -> dict[str, dict[str, float]]:
    """Trains both models into `out`/course-target and `out`/course-draft; bits per byte by model and kind of text."""
    work = out / WORK
    work.mkdir(parents=True, exist_ok=True)
    training = [d for d in texts if not d.held_out]
    tokenizer = _tokenizer(pair, training, work)
    stream = _stream(training, tokenizer, work)
    target = Trainer(pair.target, stream).train(work / "target.pt", every)
    distilled = Trainer(
        pair.draft, stream, distillation_loss(target), target.views(), about=f"distilled from {pair.target.described()}"
    )
    draft = distilled.train(work / "draft.pt", every)
    held_out = {kind: encode([d for d in texts if d.held_out and d.kind == kind], tokenizer) for kind in KINDS}
    scores = {}
    for model in (target, draft):
        model = _as_stored(model)
        name = model.config.name
        save(out / name, model.config, ((n, v.bfloat16()) for n, v in model.views().items()), tokenizer)
        scores[name] = {k: bits_per_byte(model, s, tokenizer, pair.target.window) for k, s in held_out.items()}
    return scores


def main(arguments: list[str]) -> None:
    """`python -m reference_impl train-pair`"""
    parser = cli.parser(
        "train-pair", "Trains the course's own pair, course-target and course-draft; goes on where it stopped."
    )
    parser.add_argument(
        "--out", type=Path, required=True, metavar="FOLDER", help="where the pair and the unfinished work go"
    )
    parser.add_argument(
        "--docs", type=Path, metavar="FOLDER", help="Python's documentation in reST (default: Debian's)"
    )
    parser.add_argument("--docstrings", action="store_true", help="docstrings as prose, instead of the documentation")
    parser.add_argument("--every", type=cli.whole_number, default=100, help="steps between checkpoints (100)")
    parser.add_argument(
        "--threads", type=cli.whole_number, default=1, help="CPU threads; results may differ in the last digits (1)"
    )
    parser.add_argument("--tiny", action="store_true", help="a pair of toys in seconds, to see that everything works")
    options = parser.parse_args(arguments)
    torch.set_num_threads(options.threads)
    docs = None if options.docstrings else options.docs or find_docs()
    if docs is None and not options.docstrings:
        raise ValueError(
            "the documentation's sources are not here: install Debian's python3.11-doc, name them with --docs FOLDER, "
            "or take --docstrings"
        )
    texts = documents(docs)
    pair = recipe.TINY if options.tiny else recipe.COURSE
    scores = train_pair(pair, texts, options.out, options.every)
    text = card.model_card(pair, texts, scores, python=platform.python_version(), docs=docs is not None)
    (options.out / "MODEL_CARD.md").write_text(text, encoding="utf-8")
    print(f"{options.out}: {', '.join(scores)} and MODEL_CARD.md; {options.out / WORK} can be removed")


def _tokenizer(pair: Pair, training: list[Document], work: Path) -> Tokenizer:
    if not (work / "tokenizer.json").is_file():
        tokenizer = train_bpe((d.text for d in training), pair.vocab_size)
        scratch = work / "tokenizer.part"
        scratch.mkdir(exist_ok=True)
        tokenizer.save(scratch)
        for file in sorted(scratch.iterdir(), key=lambda f: f.name == "tokenizer.json"):  # the one that counts, last
            file.rename(work / file.name)
        scratch.rmdir()
    return Tokenizer.from_folder(work)


def _stream(training: list[Document], tokenizer: Tokenizer, work: Path) -> Stream:
    """The training text as tokens, kept for the next start: encoding takes half a minute."""
    text = hashlib.sha256(tokenizer.backend.to_str().encode())
    for document in training:
        text.update(f"{document.name}\0{document.text}\0".encode())
    path = work / f"tokens-{text.hexdigest()[:16]}.npy"
    if not path.is_file():
        unfinished = work / "tokens.part.npy"
        np.save(unfinished, encode(training, tokenizer).tokens)
        unfinished.rename(path)
    return Stream(np.load(path))


def _as_stored(model: Llama) -> Llama:
    """With the weights rounded to bfloat16, as the files hold them: what is scored is what is shipped."""
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.copy_(parameter.bfloat16())
    return model
