"""No reference counts are kept: they are counted anew from the tables each time."""

from collections import Counter


class BlockAllocator:
    def __init__(self, n_blocks, block_size):
        self.n_blocks, self.block_size = n_blocks, block_size
        self.sequences = {}  # name -> (blocks, number of tokens)

    def _users(self):
        return Counter(block for blocks, _ in self.sequences.values() for block in blocks)

    def _free(self):
        users = self._users()
        return [block for block in range(self.n_blocks) if not users[block]]

    def append(self, seq, n_tokens=1):
        blocks, length = self.sequences.get(seq, ((), 0))
        free = self._free()
        pairs = []
        if length < len(blocks) * self.block_size and self._users()[blocks[-1]] > 1:
            if not free:
                raise MemoryError("no block for the copy")
            pairs = [(blocks[-1], free.pop(0))]
            blocks = (*blocks[:-1], pairs[0][1])
        while len(blocks) * self.block_size < length + n_tokens:
            if not free:
                raise MemoryError("no block left")
            blocks = (*blocks, free.pop(0))
        self.sequences[seq] = (blocks, length + n_tokens)
        return pairs

    def fork(self, parent, child):
        state = self.sequences[parent]
        if child in self.sequences:
            raise ValueError(child)
        self.sequences[child] = state

    def free(self, seq):
        del self.sequences[seq]

    def block_table(self, seq):
        return self.sequences[seq][0]

    @property
    def free_blocks(self):
        return len(self._free())
