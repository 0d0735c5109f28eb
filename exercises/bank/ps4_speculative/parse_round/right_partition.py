"""partition and removeprefix."""


def parse_round(line):
    head, bar, tail = line.partition("|")
    head, tail = head.strip(), tail.strip()
    draft = head.removeprefix("draft:")
    target = tail.removeprefix("target:")
    if not bar or draft == head or target == tail:
        raise ValueError("a part is missing")
    draft, target = draft.split(), target.split()
    if len(draft) + 1 != len(target):
        raise ValueError("the lengths do not fit")
    return [draft, target]
