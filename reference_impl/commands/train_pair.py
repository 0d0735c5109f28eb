"""The command `train-pair`: trains the course's own target and draft from scratch, and goes on where it stopped.

    python -m reference_impl train-pair --out FOLDER

The shipped pair was made by this command with its defaults.
"""

from __future__ import annotations

import platform
from pathlib import Path

import torch

from reference_impl.common import cli
from reference_impl.training import model_card, recipe
from reference_impl.training.pair import WORK, train_pair
from reference_impl.training.text import documents, find_docs


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
    text = model_card.model_card(pair, texts, scores, python=platform.python_version(), docs=docs is not None)
    (options.out / "MODEL_CARD.md").write_text(text, encoding="utf-8")
    print(f"{options.out}: {', '.join(scores)} and MODEL_CARD.md; {options.out / WORK} can be removed")
