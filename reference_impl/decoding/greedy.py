"""The acceptance rule of greedy speculative decoding: a draft guesses, and one pass of the target checks every guess.

The pass gives the target's own prediction at each drafted position and at the one after. Drafted tokens are kept while
they match. The target's token at the first mismatch, or after the last match, comes for free. Leviathan et al. 2023,
section 2, for the case of greedy decoding. Standard library only.
"""

from collections.abc import Sequence
from typing import TypeVar

Token = TypeVar("Token")


def accept_greedy(draft: Sequence[Token], target: Sequence[Token]) -> list[Token]:
    """The tokens of one round: drafted tokens while they match the target's, then the target's own next token.

    `target` is the target model's prediction at each drafted position and at the one after. The last token of the round
    is a correction, or the bonus token if all matched. ValueError unless `target` is one longer than `draft`.
    """
    check_lengths(draft, target)
    accepted = 0
    while accepted < len(draft) and draft[accepted] == target[accepted]:
        accepted += 1
    return [*draft[:accepted], target[accepted]]


def check_lengths(draft: Sequence[object], target: Sequence[object]) -> None:
    """ValueError unless `target` is one longer than `draft`."""
    if len(target) != len(draft) + 1:
        raise ValueError(
            f"the target list must be exactly one longer than the draft of {len(draft)}, got {len(target)} tokens"
        )
