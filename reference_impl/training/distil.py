"""Distillation: the draft learns the target's whole distribution after each token, not only the next token of the text.

A draft must agree with its target: a drafted token is accepted with probability Σ min(p, q). The Kullback-Leibler
divergence from the target's p to the draft's q bounds how far that is from 1 (Pinsker's inequality), and has a smooth
gradient. Hinton et al. 2015; for drafts, Zhou et al. 2023 (DistillSpec).
"""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn import functional as F  # noqa: N812

from reference_impl.model.llama import Llama
from reference_impl.training.trainer import Loss, Windows


def distillation_loss(target: Llama) -> Loss:
    """A loss in nats a token: cross-entropy between the target's distribution and the draft's at the same places."""

    def loss(batch: Windows, logits: Tensor, targets: Tensor) -> Tensor:
        with torch.no_grad():
            wanted = target(batch).softmax(dim=-1)
        return F.cross_entropy(logits, wanted)

    return loss
