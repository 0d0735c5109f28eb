"""Reference counts in a NumPy array, where 0 means free; the lowest free block first; arrays as tables."""

import numpy as np


class BlockAllocator:
    def __init__(self, n_blocks, block_size):
        self.counts = np.zeros(n_blocks, dtype=np.int64)
        self.size = block_size
        self.tables = {}
        self.tokens = {}

    @property
    def free_blocks(self):
        return np.count_nonzero(self.counts == 0)

    def append(self, seq, n_tokens=1):
        table = self.tables.get(seq, np.zeros(0, dtype=np.int64))
        n = self.tokens.get(seq, 0)
        shared = bool(n % self.size) and self.counts[table[-1]] > 1
        total = (n + n_tokens + self.size - 1) // self.size
        free = np.flatnonzero(self.counts == 0)
        need = total - len(table) + int(shared)
        if need > len(free):
            raise MemoryError(f"{need} > {len(free)}")
        taken = free[:need]
        pairs = []
        if shared:
            self.counts[table[-1]] -= 1
            pairs.append((table[-1], taken[0]))
            table = table[:-1]
        self.counts[taken] = 1
        self.tables[seq] = np.concatenate([table, taken])
        self.tokens[seq] = n + n_tokens
        return pairs

    def fork(self, parent, child):
        if parent not in self.tables:
            raise KeyError(parent)
        if child in self.tables:
            raise ValueError(child)
        self.tables[child] = self.tables[parent].copy()
        self.tokens[child] = self.tokens[parent]
        self.counts[self.tables[child]] += 1

    def free(self, seq):
        table = self.tables.pop(seq)
        del self.tokens[seq]
        self.counts[table] -= 1

    def block_table(self, seq):
        return self.tables[seq]
