"""Diagrams of the KV cache in memory: slots and blocks, block tables, copies on write, shared prefixes, offload."""

from collections.abc import Sequence

from interactives.diagrams.drawing import Colour, Diagram, Drawing
from reference_impl.bounds.config import MODELS
from reference_impl.bounds.hardware import HOST_LINK
from reference_impl.cache.blocks import BlockAllocator

LLAMA = MODELS["llama-3-8b"]


def slots_and_blocks(lengths: Sequence[int] = (9, 37, 20), slot: int = 64, block: int = 16) -> Diagram:
    """The same sequences in reserved slots and in blocks that they take as they need them."""
    allocator = BlockAllocator(n_blocks=12, block_size=block)
    for i, length in enumerate(lengths):
        allocator.add(i)
        allocator.append([(i, length)])
    drawing = Drawing("slots-and-blocks", height=322)
    scale, left = 330 / slot, 20.0
    drawing.text(6, 17, f"a slot of {slot} tokens for each sequence", bold=True)
    for i, length in enumerate(lengths):
        y = 28 + 28 * i
        drawing.text(4, y + 15, "ABC"[i])
        drawing.bar(left, y, scale * length, 20, "memory")
        drawing.bar(left + scale * length, y, scale * (slot - length), 20, "waste")
    reserved = slot * len(lengths)
    drawing.text(left, 130, f"empty: {reserved - sum(lengths)} of {reserved} places")
    drawing.text(6, 172, f"blocks of {block} tokens, as needed", bold=True)
    taken = 0
    for i, length in enumerate(lengths):
        y = 183 + 28 * i
        drawing.text(4, y + 15, "ABC"[i])
        for n in range(len(allocator.block_table(i))):
            x, full = left + scale * block * n, min(block, length - block * n)
            drawing.bar(x + 1, y, scale * full - 2, 20, "memory")
            if full < block:
                drawing.bar(x + scale * full, y, scale * (block - full) - 2, 20, "waste")
            taken += block
    drawing.text(left, 285, f"empty: {taken - sum(lengths)} of {taken} places")
    drawing.text(left, 306, f"{allocator.free_blocks} blocks are free for others")
    return drawing.finish(
        "Slots against blocks",
        f"Three sequences of {', '.join(map(str, lengths))} tokens. In slots of {slot} tokens "
        f"{reserved - sum(lengths)} of {reserved} places are empty. In blocks of {block} they take {taken} places, of "
        f"which {taken - sum(lengths)} are empty: only the end of each last block.",
        see="Hatched places are reserved and hold nothing. With blocks, only the last block of a sequence can be "
        "partly empty.",
        source="Lengths made up; the course's block allocator gave out the blocks.",
    )


def block_table(block: int = 16) -> Diagram:
    """Two sequences that grow in turns: their block tables, and where the blocks lie."""
    allocator = BlockAllocator(n_blocks=8, block_size=block)
    for name in "AB":
        allocator.add(name)
    for name, count in (("A", 2 * block), ("B", block + 4), ("A", 7), ("B", block)):
        allocator.append([(name, count)])
    tables = {name: list(allocator.block_table(name)) for name in "AB"}
    colours: dict[str, Colour] = {"A": "memory", "B": "soft"}
    drawing = Drawing("block-table", height=300)
    at = {number: 34 + 32 * number for number in range(allocator.n_blocks)}
    drawing.text(6, 18, "block tables", bold=True)
    drawing.text(354, 18, "memory", "end", bold=True)
    owner = {number: name for name, table in tables.items() for number in table}
    for number, y in at.items():
        drawing.text(282, y + 18, str(number), "end", colour="soft")
        if number in owner:
            drawing.label(290, y, 64, 27, owner[number], colours[owner[number]], bold=True)
        else:
            drawing.box(290, y, 64, 27, "soft", dashed=True)
            drawing.text(322, y + 18, "free", "middle", colour="soft")
    for name, top in (("A", 34), ("B", 162)):
        for place, number in enumerate(tables[name]):
            y = top + 32 * place
            last = min((place + 1) * block, allocator.n_tokens(name)) - 1
            drawing.text(6, y + 18, f"{name} {place * block}–{last}")
            drawing.label(84, y, 34, 27, str(number), colours[name], bold=True)
            drawing.line(120, y + 13.5, 262, at[number] + 13.5, colours[name], arrow=True)
    return drawing.finish(
        "Block tables",
        "; ".join(
            f"sequence {name} has {allocator.n_tokens(name)} tokens in blocks {', '.join(map(str, table))}"
            for name, table in tables.items()
        )
        + f". {allocator.free_blocks} of {allocator.n_blocks} blocks are free.",
        see="Left: which tokens of a sequence lie in which block. The blocks of one sequence need not be neighbours, "
        "since attention finds them through the table.",
        source=f"Two sequences that grew in turns, blocks of {block} tokens; the course's block allocator gave them "
        "out.",
    )


def copy_on_write(block: int = 16) -> Diagram:
    """A fork shares all blocks; the first to write into the last one gets a copy."""
    allocator = BlockAllocator(n_blocks=8, block_size=block)
    allocator.add("A")
    allocator.append([("A", 2 * block + 4)])
    states = [("1. A has written", _tables(allocator, "A"))]
    allocator.fork("A", "B")
    states.append(("2. fork: B shares everything", _tables(allocator, "AB")))
    (growth,) = allocator.append([("B", 1)])
    states.append(("3. B writes, and gets a copy", _tables(allocator, "AB")))
    drawing = Drawing("copy-on-write", height=396)
    for (title, tables), top in zip(states, (0, 116, 252), strict=True):
        drawing.text(6, top + 17, title, bold=True)
        blocks = sorted({number for table in tables.values() for number in table})
        users = {number: sum(table.count(number) for table in tables.values()) for number in blocks}
        x = {number: 44 + 78 * i for i, number in enumerate(blocks)}
        y = top + 62
        for number in blocks:
            new = growth.copied is not None and number == tables.get("B", [number])[-1] and title.startswith("3")
            drawing.label(x[number], y, 66, 28, f"block {number}", "soft" if new else "memory")
        for name, table in tables.items():
            level = top + 46 if name == "A" else y + 60
            drawing.text(8, level + 4, name, bold=True)
            for number in table:
                edge = y - 2 if name == "A" else y + 30
                drawing.line(x[number] + 33, level, x[number] + 33, edge, arrow=True)
            drawing.line(24, level, x[table[-1]] + 33, level)
        for number in blocks:
            drawing.text(x[number] + 39, y + 45, f"×{users[number]}", colour="soft")
    shared, own = states[1][1]["A"], states[2][1]["B"]
    return drawing.finish(
        "Fork and copy on write",
        f"A has blocks {', '.join(map(str, shared))}. After the fork B's table names the same blocks, and each is used "
        f"twice. When B writes into the last block, which is partly filled, it gets a copy: its table is now "
        f"{', '.join(map(str, own))}. The full blocks stay shared.",
        see="×2 says that two tables name a block. Only the block that is written to is copied, and only then.",
        source="The course's block allocator did these three steps.",
    )


def prefix_tree() -> Diagram:
    """Prompts that begin alike, as a tree of blocks, with the number of requests that use each."""
    allocator = BlockAllocator(n_blocks=12, block_size=16)
    paths = {"A": ("rules", "maps"), "B": ("rules", "maps", "opening"), "C": ("rules", "novels")}
    found: dict[tuple[str, ...], int] = {}
    for name, path in paths.items():
        known = [found[path[: i + 1]] for i in range(len(path)) if path[: i + 1] in found]
        allocator.add(name, known)
        allocator.append([(name, 16 * (len(path) - len(known)))])
        found |= {path[: i + 1]: number for i, number in enumerate(allocator.block_table(name))}
    uses = {key: sum(number in allocator.block_table(name) for name in paths) for key, number in found.items()}
    drawing = Drawing("prefix-tree", height=314)
    places = {
        ("rules",): (112, 10, "You answer visitors."),
        ("rules", "maps"): (6, 104, "Where are the maps?"),
        ("rules", "novels"): (190, 104, "Any new novels?"),
        ("rules", "maps", "opening"): (6, 198, "And until when?"),
    }
    for key, (x, y, words) in places.items():
        if len(key) > 1:
            px, py, _ = places[key[:-1]]
            drawing.line(px + 82, py + 56, x + 82, y - 2, arrow=True)
        drawing.box(x, y, 164, 54, "memory")
        drawing.text(x + 82, y + 22, words, "middle")
        users = ", ".join(name for name, path in paths.items() if path[: len(key)] == key)
        drawing.text(x + 82, y + 43, f"×{uses[key]}: {users}", "middle", bold=True)
    separate = sum(map(len, paths.values()))
    drawing.text(6, 284, f"{len(found)} blocks in place of {separate}: the first one is computed")
    drawing.text(6, 302, f"and stored once for all {uses['rules',]} requests.")
    return drawing.finish(
        "A tree of shared prefixes",
        f"Three requests begin with the same block, which is used {uses['rules',]} times. A and B also share the next "
        f"one. B goes on with a block of its own, and C has another second block. {len(found)} blocks are stored in "
        f"place of {separate}.",
        see="Each box is a block of tokens after all those above it. The number says how many requests use it: at 0 "
        "it may be dropped, and not before those below it.",
        source="Three made-up requests; counts from the course's block allocator.",
    )


def offload_hazard(n_tokens: int = 4096) -> Diagram:
    """A copy to the CPU takes time: its blocks may be given away when it is done, not when it starts."""
    took = 1000 * n_tokens * LLAMA.kv_bytes_per_token() / HOST_LINK
    drawing = Drawing("offload-hazard", height=284)
    start, stop, end = 92.0, 252.0, 352.0
    for top, title, free_at in (
        (0, "wrong: free when the copy starts", start),
        (132, "right: free when it is done", stop),
    ):
        drawing.text(6, top + 17, title, bold=True)
        drawing.text(6, top + 45, "A's blocks")
        drawing.text(6, top + 81, "copy")
        drawing.box(start - 2, top + 30, free_at - start + 2, 22, "memory")
        if free_at == stop:
            drawing.text((start + stop) / 2, top + 46, "nobody's", "middle")
        drawing.box(free_at, top + 30, end - free_at, 22, "soft")
        drawing.text((free_at + end) / 2, top + 46, "B writes here", "middle")
        drawing.bar(start, top + 68, stop - start, 16, "memory")
        drawing.text(start, top + 104, f"{took:.1f} ms to the CPU's memory")
        if free_at == start:
            drawing.text(start, top + 122, "It copies B's tokens as A's.", bold=True)
    drawing.text(92, 256, "A comes back whole.", bold=True)
    drawing.text(6, 278, f"A: {n_tokens:,} tokens of Llama 3 8B", colour="soft")
    return drawing.finish(
        "The hazard of offload",
        f"Copying {n_tokens:,} tokens to the CPU takes {took:.1f} ms. Above, the blocks are given to B when the copy "
        "starts, so B overwrites what the copy has not read yet, and A comes back with B's tokens. Below, the blocks "
        "belong to nobody until the copy is done.",
        see="While a copy runs, its blocks belong to nobody. The upper order raises no error: it only gives wrong "
        "answers.",
        source=f"{LLAMA.kv_bytes_per_token():,} bytes a token over a link of {HOST_LINK / 1e9:.0f} GB/s.",
    )


def _tables(allocator: BlockAllocator, names: str) -> dict[str, list[int]]:
    return {name: list(allocator.block_table(name)) for name in names}
