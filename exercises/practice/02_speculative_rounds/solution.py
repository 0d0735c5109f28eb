import re
import sys


def parse(line):
    found = re.fullmatch(r"\s*draft:(.*?)\|\s*target:(.*)", line, re.DOTALL)
    if not found:
        raise ValueError(f"expected 'draft: ... | target: ...', got {line!r}")
    draft, target = found[1].split(), found[2].split()
    if len(target) != len(draft) + 1:
        raise ValueError(f"the target must be one longer than the draft: {line!r}")
    return draft, target


def accept(draft, target):
    n = 0
    while n < len(draft) and draft[n] == target[n]:
        n += 1
    return target[: n + 1]  # what was accepted is the target's own text; one more token comes on top


rounds = [accept(*parse(line)) for line in sys.stdin if line.strip()]
if not rounds:
    raise ValueError("there is no round")
for number, tokens in enumerate(rounds, start=1):
    print(f"round {number}: +{len(tokens)}", *tokens)
total = sum(map(len, rounds))
print(f"{total} tokens in {len(rounds)} target passes ({total / len(rounds):.2f} per pass)")
