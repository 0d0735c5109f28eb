"""The pair's tokenizer: byte-level BPE, trained on the training files with the `tokenizers` library.

A small vocabulary keeps the output head small, which is most of a one-layer draft. At byte level any text has tokens.
"""

from __future__ import annotations

from collections.abc import Iterable

import tokenizers
from tokenizers import decoders, models, pre_tokenizers, trainers

from reference_impl.checkpoints.tokenizer import Tokenizer

END = "<|endoftext|>"  # between documents; id 0


def train_bpe(texts: Iterable[str], vocab_size: int = 2048) -> Tokenizer:
    """A tokenizer of `vocab_size` tokens. The same texts in the same order give the same tokenizer.

    Digits stand alone, as in SmolLM2; runs of spaces may be one token, which indented code needs.
    """
    backend = tokenizers.Tokenizer(models.BPE())
    backend.pre_tokenizer = pre_tokenizers.Sequence(
        [pre_tokenizers.Digits(individual_digits=True), pre_tokenizers.ByteLevel(add_prefix_space=False)]
    )
    backend.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=vocab_size,
        special_tokens=[END],
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    backend.train_from_iterator(texts, trainer)
    return Tokenizer(backend, eos_ids=[0], special_tokens={"eos_token": END})
