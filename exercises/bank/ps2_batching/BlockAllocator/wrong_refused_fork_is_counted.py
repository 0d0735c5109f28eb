"""A fork counts its blocks before it looks whether the child exists

Hint: After an error everything is as it was before. What has your `fork` changed when it refuses?
Caught by: fork-shares
"""


class BlockAllocator:
    def __init__(self, n_blocks, block_size):
        self.block_size = block_size
        self.unused = list(range(n_blocks))
        self.users = [0] * n_blocks
        self.tables = {}
        self.lengths = {}

    def append(self, seq, n_tokens=1):
        table = self.tables.get(seq, [])
        length = self.lengths.get(seq, 0)
        copy = length % self.block_size != 0 and self.users[table[-1]] > 1
        missing = -(-(length + n_tokens) // self.block_size) - len(table)
        if missing + copy > len(self.unused):
            raise MemoryError("not enough free blocks")
        pairs = []
        if copy:
            source = table[-1]
            table[-1] = self.take()
            self.drop(source)
            pairs.append((source, table[-1]))
        for _ in range(missing):
            table.append(self.take())
        self.tables[seq] = table
        self.lengths[seq] = length + n_tokens
        return pairs

    def fork(self, parent, child):
        for block in self.tables[parent]:
            self.users[block] += 1
        if child in self.tables:
            raise ValueError(f"{child!r} exists already")
        self.tables[child] = list(self.tables[parent])
        self.lengths[child] = self.lengths[parent]

    def free(self, seq):
        if seq not in self.tables:
            raise KeyError(seq)
        for block in self.tables.pop(seq):
            self.drop(block)
        del self.lengths[seq]

    def block_table(self, seq):
        return list(self.tables[seq])

    @property
    def free_blocks(self):
        return len(self.unused)

    def take(self):
        block = self.unused.pop()
        self.users[block] = 1
        return block

    def drop(self, block):
        self.users[block] -= 1
        if self.users[block] == 0:
            self.unused.append(block)
