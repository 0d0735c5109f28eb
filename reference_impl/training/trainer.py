"""The training loop: windows in, loss, two optimizers, checkpoints at fixed intervals.

Recipe, text and loss alone decide a run. A checkpoint holds all its state (weights, optimizers, step) and appears whole
or not at all. A run that finds one goes on from there and ends in the same weights as a run that was never interrupted.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional as F  # noqa: N812
from tqdm import tqdm

from reference_impl.common.errors import WeightsError
from reference_impl.common.files import written_whole
from reference_impl.model.llama import Layer, Llama
from reference_impl.training.corpus import Stream
from reference_impl.training.muon import Muon
from reference_impl.training.recipe import Recipe

Loss = Callable[["Windows", Tensor, Tensor], Tensor]  # (batch, logits [n, vocabulary], next tokens [n]) -> scalar


class Windows:
    """A `ForwardBatch` for training: windows of one length that attend to themselves. inputs int64 [n, length]."""

    def __init__(self, inputs: Tensor) -> None:
        self.n, self.length = inputs.shape
        self.tokens = inputs.reshape(-1)
        self.positions = torch.arange(self.length).repeat(self.n)
        self.last_rows = torch.arange(1, self.n + 1) * self.length - 1

    def attend(self, layer: int, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        """Causal grouped-query attention inside each window: q [n · length, heads, head_dim] -> the same shape."""
        q, k, v = (t.view(self.n, self.length, -1, t.shape[-1]).transpose(1, 2) for t in (q, k, v))
        out = F.scaled_dot_product_attention(q, k, v, is_causal=True, enable_gqa=True)
        return out.transpose(1, 2).reshape(self.n * self.length, -1, q.shape[-1])


def next_token_loss(batch: Windows, logits: Tensor, targets: Tensor) -> Tensor:
    """Cross-entropy in nats a token."""
    return F.cross_entropy(logits, targets)


@torch.no_grad()
def initialize(model: Llama, seed: int) -> Llama:
    """Random weights to start from; what each layer adds to the residual stream starts at 0."""
    generator = torch.Generator().manual_seed(seed)
    for name, view in model.views().items():
        if name.endswith("norm.weight"):
            view.fill_(1.0)
        elif name.endswith(("o_proj.weight", "down_proj.weight")):
            view.zero_()
        else:
            view.normal_(0.0, 0.02 if "embed" in name else view.shape[1] ** -0.5, generator=generator)
    return model


class Trainer:
    """One run. `train` goes to the end, or to `until`; `checkpoint` is the file that it saves to and resumes from.

    It starts from random weights, or from those of `start` with the same names. `about` distinguishes it from other
    runs.
    """

    def __init__(
        self,
        recipe: Recipe,
        stream: Stream,
        loss: Loss = next_token_loss,
        start: Mapping[str, Tensor] | None = None,
        about: str = "",
    ) -> None:
        self.recipe = recipe
        self.stream = stream
        self.loss = loss
        model = initialize(Llama(recipe.config), recipe.seed)
        for name, view in model.views().items():
            if start is not None and name in start:
                view.copy_(start[name])
        self.model = model.requires_grad_(True)
        self.step = 0
        matrices, parts = _hidden(self.model)
        chosen = {id(m) for m in matrices}
        self.muon = Muon(matrices, parts)
        others = [p for p in self.model.parameters() if id(p) not in chosen]
        self.adam = torch.optim.AdamW(others, lr=recipe.other_lr, betas=(0.9, 0.95), weight_decay=0.0)
        text = hashlib.sha256(stream.tokens.tobytes()).hexdigest()
        self.identity = json.dumps({"recipe": recipe.described(), "text": text, "about": about}, sort_keys=True)

    def train(self, checkpoint: Path, every: int = 100, until: int | None = None) -> Llama:
        """Returns the model, in evaluation mode and without gradients. WeightsError for another run's checkpoint."""
        if checkpoint.is_file():
            self._resume(checkpoint)
        end = self.recipe.steps if until is None else until
        with tqdm(total=self.recipe.steps, initial=self.step, desc=self.recipe.config.name, unit=" steps") as bar:
            mean = 0.0
            while self.step < end:
                loss = self.one_step()
                mean = loss if not mean else 0.95 * mean + 0.05 * loss
                bar.update()
                bar.set_postfix(loss=f"{mean:.3f}", refresh=False)
                if self.step % every == 0 or self.step == end:
                    self._save(checkpoint)
        return self.model.requires_grad_(False).eval()

    def one_step(self) -> float:
        """Does one update and returns the loss before it."""
        recipe, context = self.recipe, self.recipe.context(self.step)
        inputs, targets = self.stream.windows(self.step, recipe.n_windows, recipe.window, recipe.seed)
        batch = Windows(inputs.reshape(-1, context))
        self.model.zero_grad()
        loss = self.loss(batch, self.model(batch), targets.reshape(-1))
        loss.backward()
        rate = recipe.rate(self.step)
        self.muon.step(recipe.matrix_lr * rate)
        for group in self.adam.param_groups:
            group["lr"] = recipe.other_lr * rate
        self.adam.step()
        self.step += 1
        return loss.item()

    def _save(self, path: Path) -> None:
        state = {
            "identity": self.identity,
            "step": self.step,
            "model": self.model.state_dict(),
            "muon": self.muon.state_dict(),
            "adam": self.adam.state_dict(),
        }
        with written_whole(path) as part:
            torch.save(state, part)

    def _resume(self, path: Path) -> None:
        try:
            state: dict[str, Any] = torch.load(path, weights_only=True)
            identity = state["identity"]
        except Exception as error:  # torch raises many kinds for a damaged file
            raise WeightsError(f"{path}: expected a checkpoint of this command ({error})") from None
        if identity != self.identity:
            raise WeightsError(
                f"{path}: belongs to another run (recipe or text differ); remove it, or use another --out"
            )
        self.step = state["step"]
        self.model.load_state_dict(state["model"])
        self.muon.load_state_dict(state["muon"])
        self.adam.load_state_dict(state["adam"])


def _hidden(model: Llama) -> tuple[list[Tensor], list[list[int]]]:
    """The matrices between embedding and head, and for each fused one the rows of its parts."""
    c = model.config
    heads = [n * c.head_dim for n in (c.n_heads, c.n_kv_heads, c.n_kv_heads)]
    matrices: list[Tensor] = []
    parts: list[list[int]] = []
    for layer in model.layers:
        assert isinstance(layer, Layer)
        matrices += [layer.wqkv.weight, layer.wo.weight, layer.w_gate_up.weight, layer.w_down.weight]
        parts += [heads, [c.d_model], [c.d_ff, c.d_ff], [c.d_model]]
    return matrices, parts
