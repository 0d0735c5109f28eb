"""The command `speculate`, and the program exercise "one line per speculative round" behind it.

    python -m reference_impl speculate < INPUT

A line of input holds what a draft model guessed and what the target model predicts. The program writes for each how
many tokens the round brings. Standard library only.
"""

import re

from reference_impl.common import cli
from reference_impl.decoding.greedy import accept_greedy, check_lengths

# A token may hold ":" or "|" (think of "<|end|>"): only a bar in front of "target:" ends the draft.
_ROUND = re.compile(r"\s*draft:(?P<draft>.*?)\|\s*target:(?P<target>.*)", re.DOTALL)


def parse_round(line: str) -> tuple[list[str], list[str]]:
    """(draft, target) of a line `draft: a b c | target: a b x y`; the draft may be empty.

    ValueError for a missing part, and if the target list is not exactly one longer than the draft.
    """
    parts = _ROUND.fullmatch(line)
    if not parts:
        missing = "'draft:' at the start" if not line.lstrip().startswith("draft:") else "'| target:' after the draft"
        raise ValueError(f"missing {missing}, got {cli.shown(line.strip())}")
    draft, target = parts["draft"].split(), parts["target"].split()
    check_lengths(draft, target)
    return draft, target


def speculative_report(text: str) -> str:
    """The program's output: one line a round, then the summary; no newline at the end. Blank lines are skipped.

    ValueError as in `parse_round`, naming the line, and if the text holds no round at all.
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


def main(arguments: list[str]) -> None:
    """`python -m reference_impl speculate < INPUT`"""
    cli.parser("speculate", "Lines of standard input: draft: a b | target: a b c").parse_args(arguments)
    print(speculative_report(cli.read_input()))
