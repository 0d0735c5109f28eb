"""A regular expression, tuples returned."""

import re


def parse_round(line):
    match = re.fullmatch(r"\s*draft:([^|]*)\|\s*target:([^|]*)", line)
    if match is None:
        raise ValueError(f"malformed: {line!r}")
    draft, target = (tuple(part.split()) for part in match.groups())
    if len(target) - len(draft) != 1:
        raise ValueError(f"{len(draft)} and {len(target)} tokens")
    return draft, target
