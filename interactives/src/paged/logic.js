// Block tables with sharing and copy on write: reference_impl/cache/blocks.py without a prefix index, the same free list.

export class Blocks {
  constructor(n, size) {
    this.size = size;
    this.free = Array.from({ length: n }, (_, i) => n - 1 - i); // taken from the end: block 0 first
    this.references = new Array(n).fill(0);
    this.tables = new Map(); // name -> {blocks, tokens}
  }

  #take() {
    const block = this.free.pop();
    if (block === undefined) throw new RangeError("no block is free");
    this.references[block] = 1;
    return block;
  }

  #release(block) {
    this.references[block]--;
    if (this.references[block] === 0) this.free.push(block);
  }

  /** A new sequence that starts with these full blocks of another. */
  add(name, blocks = []) {
    for (const block of blocks) this.references[block]++;
    this.tables.set(name, { blocks: [...blocks], tokens: blocks.length * this.size });
  }

  fork(parent, child) {
    const { blocks, tokens } = this.tables.get(parent);
    this.add(child, blocks);
    this.tables.get(child).tokens = tokens;
  }

  /** Room for `n` more tokens: {taken: blocks, copied: [source, copy] or null}. */
  append(name, n = 1) {
    const table = this.tables.get(name);
    let copied = null;
    if (n && table.tokens % this.size) {
      const last = table.blocks.at(-1);
      if (this.references[last] > 1) {
        const copy = this.#take();
        table.blocks[table.blocks.length - 1] = copy;
        this.#release(last);
        copied = [last, copy];
      }
    }
    table.tokens += n;
    const taken = [];
    while (table.blocks.length * this.size < table.tokens) {
      taken.push(this.#take());
      table.blocks.push(taken.at(-1));
    }
    return { taken, copied };
  }

  release(name) {
    const { blocks } = this.tables.get(name);
    while (blocks.length) this.#release(blocks.pop());
    this.tables.delete(name);
  }

  get used() {
    return this.references.filter((count) => count > 0).length;
  }

  /** Tokens stored in each block: a shared block's once. */
  filled() {
    const found = new Array(this.references.length).fill(0);
    for (const { blocks, tokens } of this.tables.values())
      blocks.forEach(
        (block, i) => (found[block] = Math.max(found[block], Math.min(this.size, tokens - i * this.size))),
      );
    return found;
  }
}

const LETTERS = "ABCDEFGHIJKL";
export const MOST = LETTERS.length;

/**
 * The cache after the start `lengths` (tokens, the first `prefix` of them the same text) and `events`, strings "fork A"
 * and "write A". Returns {blocks, told: sentences of the last event, touched: blocks it changed, names}.
 */
export function replay({ lengths, block_size: size, prefix, events }) {
  const room = lengths.reduce((sum, length) => sum + Math.ceil(length / size), 0) + 12;
  const cache = new Blocks(room, size);
  let first = null;
  lengths.forEach((length, i) => {
    const name = LETTERS[i];
    // Only full blocks are shared, and at least one token of each prompt is computed anew.
    const shared =
      first === null ? 0 : Math.min(Math.floor(Math.min(prefix, lengths[0]) / size), Math.floor((length - 1) / size));
    cache.add(name, first === null ? [] : cache.tables.get(first).blocks.slice(0, shared));
    cache.append(name, length - shared * size);
    first ??= name;
  });
  let told = [];
  let touched = [];
  for (const event of events) {
    const [act, name] = event.split(" ");
    if (!cache.tables.has(name)) continue;
    if (act === "fork") {
      if (cache.tables.size >= MOST) continue;
      const child = LETTERS[cache.tables.size];
      cache.fork(name, child);
      const { blocks } = cache.tables.get(child);
      touched = [...blocks];
      told = [
        `${child} gets a copy of ${name}'s block table: ${blocks.length} numbers, no token is copied.`,
        `Each of these blocks now counts one user more.`,
      ];
    } else {
      const before = cache.tables.get(name).blocks.at(-1);
      const users = cache.references[before];
      const { taken, copied } = cache.append(name);
      if (copied) {
        touched = copied;
        told = [
          `${name} wants to write into block ${copied[0]}, but ${users} sequences use it.`,
          `Block ${copied[1]} is taken from the free ones, and what block ${copied[0]} holds is copied.`,
          `${name}'s table names block ${copied[1]} now; block ${copied[0]} has ${users - 1 === 1 ? "one user" : `${users - 1} users`} left.`,
          `The token is written into block ${copied[1]}. The others see nothing of it.`,
        ];
      } else if (taken.length) {
        touched = taken;
        told = [
          `${name}'s last block is full: block ${taken[0]} is taken from the free ones.`,
          `The token is written into its first place.`,
        ];
      } else {
        touched = [before];
        told = [`Block ${before} is ${name}'s alone and has room: the token is written, nothing else happens.`];
      }
    }
  }
  return { cache, told, touched };
}

/** Tokens and bytes that each way sets aside and wastes. A contiguous slot is `reserved` tokens long, or longer if it must. */
export function account(state, kvBytes) {
  const { cache } = replay(state);
  const lengths = [...cache.tables.values()].map(({ tokens }) => tokens);
  const stored = lengths.reduce((sum, tokens) => sum + tokens, 0);
  const slot = Math.max(state.reserved, ...lengths);
  const filled = cache.filled().reduce((sum, tokens) => sum + tokens, 0);
  const paged = cache.used * state.block_size;
  return {
    lengths,
    slot,
    stored,
    filled,
    contiguous: slot * lengths.length,
    contiguousWaste: slot * lengths.length - stored,
    paged,
    pagedWaste: paged - filled,
    shared: stored - filled,
    blocks: cache.used,
    wasteBytes: [(slot * lengths.length - stored) * kvBytes, (paged - filled) * kvBytes],
    bytes: [slot * lengths.length * kvBytes, paged * kvBytes],
  };
}
