"""Trains the course's pair from text: the tokenizer, the target, the draft distilled from it, and their scores.

Finished parts are kept in the folder WORK below the output, so an interrupted run goes on where it stopped.
"""

from __future__ import annotations

import hashlib
from pathlib import Path

import numpy as np
import torch

from reference_impl.checkpoints.folder import new_folder, save
from reference_impl.checkpoints.tokenizer import Tokenizer
from reference_impl.common.files import written_whole
from reference_impl.model.llama import Llama
from reference_impl.training.bpe import train_bpe
from reference_impl.training.corpus import Stream, encode
from reference_impl.training.distil import distillation_loss
from reference_impl.training.recipe import Pair
from reference_impl.training.score import bits_per_byte
from reference_impl.training.text import KINDS, Document
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


def _tokenizer(pair: Pair, training: list[Document], work: Path) -> Tokenizer:
    folder = work / "tokenizer"
    if not folder.is_dir():
        with new_folder(folder) as unfinished:
            train_bpe((d.text for d in training), pair.vocab_size).save(unfinished)
    return Tokenizer.from_folder(folder)


def _stream(training: list[Document], tokenizer: Tokenizer, work: Path) -> Stream:
    """The training text as tokens, kept for the next start: encoding takes half a minute."""
    text = hashlib.sha256(tokenizer.backend.to_str().encode())
    for document in training:
        text.update(f"{document.name}\0{document.text}\0".encode())
    path = work / f"tokens-{text.hexdigest()[:16]}.npy"
    if not path.is_file():
        with written_whole(path) as part, part.open("wb") as file:
            np.save(file, encode(training, tokenizer).tokens)
    return Stream(np.load(path))


def _as_stored(model: Llama) -> Llama:
    """With the weights rounded to bfloat16, as the files hold them: what is scored is what is shipped."""
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.copy_(parameter.bfloat16())
    return model
