"""Greedy speculative decoding on paper: a draft guesses, one pass of the target checks all guesses at once.

The one idea: the target's own prediction at each drafted position tells how far the draft was right, and one token
more comes for free (Leviathan et al., 2023, section 2, for the case of greedy decoding). Also the program exercise "one
line per speculative round". Standard library only.
"""

import re
from collections.abc import Sequence
from typing import TypeVar

from reference_impl.common import cli

Token = TypeVar("Token")

# A token may hold ":" or "|" (think of "<|end|>"): only a bar in front of "target:" ends the draft.
_ROUND = re.compile(r"\s*draft:(?P<draft>.*?)\|\s*target:(?P<target>.*)", re.DOTALL)


def accept_greedy(draft: Sequence[Token], target: Sequence[Token]) -> list[Token]:
    """The tokens of one round: drafted tokens while they match the target's, then the target's own next token.

    `target` is the target model's prediction at each drafted position and at the one after; the last token of the round
    is a correction, or the bonus token where all matched. Raises ValueError unless `target` is one longer than `draft`.
    """
    _check_lengths(draft, target)
    accepted = 0
    while accepted < len(draft) and draft[accepted] == target[accepted]:
        accepted += 1
    return [*draft[:accepted], target[accepted]]


def parse_round(line: str) -> tuple[list[str], list[str]]:
    """(draft, target) of a line `draft: a b c | target: a b x y`; the draft may be empty.

    Raises ValueError for a missing part and where the target list is not exactly one longer than the draft.
    """
    parts = _ROUND.fullmatch(line)
    if not parts:
        missing = "'draft:' at the start" if not line.lstrip().startswith("draft:") else "'| target:' after the draft"
        raise ValueError(f"missing {missing}, got {cli.shown(line.strip())}")
    draft, target = parts["draft"].split(), parts["target"].split()
    _check_lengths(draft, target)
    return draft, target


def speculative_report(text: str) -> str:
    """The program's output: one line a round, then the summary; no newline at the end. Blank lines are skipped.

    Raises ValueError naming the line as `parse_round` does, and where there is no round at all.
    """
    lines: list[str] = []
    n_tokens = 0
    for number, line in enumerate(text.split("\n"), start=1):
        if not line.strip():
            continue
        try:
            tokens = accept_greedy(*parse_round(line))
        except ValueError as error:
            raise ValueError(f"line {number}: {error}") from None
        n_tokens += len(tokens)
        lines.append(f"round {len(lines) + 1}: +{len(tokens)} {' '.join(tokens)}")
    if not lines:
        raise ValueError("line 1: no round; expected lines like 'draft: a b | target: a b c'")
    summary = f"{n_tokens} tokens in {len(lines)} target passes ({n_tokens / len(lines):.2f} per pass)"
    return "\n".join([*lines, summary])


def main(arguments: list[str]) -> int:
    """`python -m reference_impl speculate < INPUT`"""
    cli.parser("speculate", "Lines of standard input: draft: a b | target: a b c").parse_args(arguments)
    print(speculative_report(cli.read_input()))
    return 0


def _check_lengths(draft: Sequence[Token], target: Sequence[Token]) -> None:
    if len(target) != len(draft) + 1:
        raise ValueError(
            f"the target list must be exactly one longer than the draft of {len(draft)}, got {len(target)} tokens"
        )
