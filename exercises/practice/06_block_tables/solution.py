import sys


def append(name, n):
    if n < 1:
        raise ValueError(f"{n} tokens cannot be appended")
    table, length = tables.get(name, []), n_tokens.get(name, 0) + n
    needed = -(-length // block_size) - len(table)  # blocks for all its tokens, rounded up, less those it has
    if needed > len(free):
        return f"needs {needed}"
    taken = sorted(free)[:needed]
    free.difference_update(taken)
    tables[name], n_tokens[name] = table + taken, length
    return " ".join(map(str, tables[name]))


def release(name):
    if name not in tables:
        raise ValueError(f"there is no sequence {name}")
    free.update(tables.pop(name))
    del n_tokens[name]
    return "freed"


first, *commands = sys.stdin.read().splitlines() or [""]
n_blocks, block_size = map(int, first.split())  # ValueError unless there are two
if n_blocks < 1 or block_size < 1:
    raise ValueError("line 1 must hold two positive integers")
free, tables, n_tokens = set(range(n_blocks)), {}, {}
for line in filter(str.strip, commands):
    match line.split():
        case ["append", name, n]:
            said = append(name, int(n))
        case ["free", name]:
            said = release(name)
        case _:
            raise ValueError(f"not a command: {line!r}")
    print(f"{name}: {said}, {len(free)} free")
