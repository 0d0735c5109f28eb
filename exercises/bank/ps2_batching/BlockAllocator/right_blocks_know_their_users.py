"""Each block holds the set of its users; free_blocks is a plain attribute that is kept up to date."""

from dataclasses import dataclass, field


@dataclass
class Block:
    number: int
    users: set = field(default_factory=set)


@dataclass
class Entry:
    blocks: list = field(default_factory=list)
    room: int = 0  # tokens that still fit into the last block


class BlockAllocator:
    def __init__(self, n_blocks, block_size):
        self.pool = [Block(number) for number in range(n_blocks)]
        self.block_size = block_size
        self.entries = {}
        self.free_blocks = n_blocks

    def append(self, seq, n_tokens=1):
        entry = self.entries.get(seq) or Entry()
        copies = 1 if entry.room and len(entry.blocks[-1].users) > 1 else 0
        new = max(0, -(-(n_tokens - entry.room) // self.block_size))
        if copies + new > self.free_blocks:
            raise MemoryError("the pool is empty")
        self.entries[seq] = entry
        pairs = []
        if copies:
            old = entry.blocks.pop()
            old.users.remove(seq)
            entry.blocks.append(self._find(seq))
            pairs.append([old.number, entry.blocks[-1].number])
        entry.blocks.extend([self._find(seq) for _ in range(new)])
        entry.room += new * self.block_size - n_tokens
        return pairs

    def _find(self, seq):
        block = next(block for block in self.pool if not block.users)
        block.users.add(seq)
        self.free_blocks -= 1
        return block

    def fork(self, parent, child):
        source = self.entries[parent]
        if child in self.entries:
            raise ValueError("this name is taken")
        for block in source.blocks:
            block.users.add(child)
        self.entries[child] = Entry(source.blocks[:], source.room)

    def free(self, seq):
        for block in self.entries.pop(seq).blocks:
            block.users.discard(seq)
            if not block.users:
                self.free_blocks += 1

    def block_table(self, seq):
        return [block.number for block in self.entries[seq].blocks]
