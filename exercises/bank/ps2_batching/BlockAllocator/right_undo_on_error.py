"""append works on a copy of the whole state and keeps it only if all went well."""

import copy


class BlockAllocator:
    def __init__(self, n_blocks, block_size):
        self.size = block_size
        self.state = {"free": set(range(n_blocks)), "tables": {}, "lengths": {}}

    def append(self, seq, n_tokens=1):
        state = copy.deepcopy(self.state)
        table = state["tables"].setdefault(seq, [])
        length = state["lengths"].get(seq, 0)
        pairs = []
        for position in range(length, length + n_tokens):
            if position % self.size == 0:
                table.append(self._take(state))
            elif sum(table[-1] in other for other in state["tables"].values()) > 1:
                pairs.append((table[-1], self._take(state)))
                table[-1] = pairs[-1][1]
        state["lengths"][seq] = length + n_tokens
        self.state = state
        return pairs

    @staticmethod
    def _take(state):
        if not state["free"]:
            raise MemoryError("full")
        return state["free"].pop()

    def fork(self, parent, child):
        tables, lengths = self.state["tables"], self.state["lengths"]
        blocks = list(tables[parent])
        if child in tables:
            raise ValueError(child)
        tables[child], lengths[child] = blocks, lengths[parent]

    def free(self, seq):
        blocks = self.state["tables"].pop(seq)
        del self.state["lengths"][seq]
        others = {block for table in self.state["tables"].values() for block in table}
        self.state["free"] |= set(blocks) - others

    def block_table(self, seq):
        return self.state["tables"][seq]

    @property
    def free_blocks(self):
        return len(self.state["free"])
