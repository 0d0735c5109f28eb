// Latency against throughput of a growing batch, where memory ends it, and what fits under a latency limit.
import { deploy } from "../shared/arithmetic.js";

export const MAX = 512; // sequences

/** One row per batch size; `memory` is how many sequences of this context fit at all. */
export function batchRows(model, gpu, { weight_bits: bits, context }, batches) {
  const here = deploy(model, gpu, { bits });
  return batches.map((batch) => {
    const { seconds, rate } = here.step(batch, context);
    return { batch, seconds, rate, used: here.used(batch, context), limit: here.limit(batch, context) };
  });
}

export const memoryWall = (model, gpu, { weight_bits: bits, context }) =>
  deploy(model, gpu, { bits }).maxSequences(context);

/** The largest batch that fits and whose step takes at most `limit` seconds; 0 if there is none. */
export function bestBatch(model, gpu, state, limit) {
  const here = deploy(model, gpu, { bits: state.weight_bits });
  let [low, high] = [0, here.maxSequences(state.context)];
  while (low < high) {
    const middle = Math.ceil((low + high) / 2);
    if (here.step(middle, state.context).seconds <= limit) low = middle;
    else high = middle - 1;
  }
  return low;
}
