// The requests of the next forward pass, by the rule of reference_impl/engine/scheduler.py (static, continuous, with a token budget), and
// how long each pass takes at best on a GPU. The cache never fills here; slots are what is short.
import { deploy } from "../shared/arithmetic.js";

const WHOLE = 1e9; // a token budget that no prompt reaches: prompts are not cut

/** Seconds of a pass over `chunks` [{from, to}]: tokens from..to-1 of one request each. Linear layers, then attention. */
export function passSeconds(here, chunks) {
  const total = (value) => chunks.reduce((sum, chunk) => sum + value(chunk), 0);
  const linear = here.operators(
    here.weights,
    total(({ from, to }) => here.flops(0) * (to - from)),
  );
  const pairs = total(({ from, to }) => ((from + 1 + to) / 2) * (to - from)); // each token sees itself and all before
  return (
    linear.seconds +
    here.operators(
      total(({ to }) => to * here.kv),
      here.attention * pairs,
    ).seconds
  );
}

/**
 * Serves `requests` [{arrival (ms), prompt, answer}] on `slots`; kind "static", "continuous" or "chunked".
 * Returns {passes: [{start, end, chunks: [{id, from, to, decode}]}], times: per request the seconds of its tokens,
 * freed: when its slot is free again}.
 */
export function serve(requests, { kind, slots, budget, seconds }) {
  const limit = kind === "chunked" ? budget : WHOLE;
  const states = requests.map((request, id) => ({ id, ...request, cached: 0, output: 0 }));
  const times = requests.map(() => []);
  const passes = [];
  const over = new Set();
  const freed = []; // when each request gives its slot back
  let [coming, waiting, running, held] = [[...states], [], [], 0];
  let now = 0;
  const isDecode = (state) => state.output > 0 && state.prompt + state.output - state.cached === 1;
  const chunk = (state, left) => ({
    state,
    from: state.cached,
    to: Math.min(state.prompt + state.output, state.cached + left),
    decode: isDecode(state),
  });
  while (coming.length || waiting.length || running.length) {
    while (coming.length && coming[0].arrival / 1e3 <= now) waiting.push(coming.shift());
    if (kind === "static" && running.length === 0) {
      held = 0;
      while (waiting.length && running.length < slots) running.push(waiting.shift());
    }
    let left = limit;
    const chunks = [];
    for (const state of [...running.filter(isDecode), ...running.filter((state) => !isDecode(state))]) {
      if (left <= 0) break;
      chunks.push(chunk(state, left));
      left -= chunks.at(-1).to - chunks.at(-1).from;
    }
    while (kind !== "static" && left > 0 && waiting.length && running.length + held < slots) {
      running.push(waiting.shift());
      chunks.push(chunk(running.at(-1), left));
      left -= chunks.at(-1).to - chunks.at(-1).from;
    }
    if (chunks.length === 0) {
      now = coming[0].arrival / 1e3; // idle until somebody comes
      continue;
    }
    const start = now;
    now += seconds(chunks);
    passes.push({
      start,
      end: now,
      chunks: chunks.map(({ state, from, to, decode }) => ({ id: state.id, from, to, decode })),
    });
    for (const { state, to } of chunks) {
      state.cached = to;
      if (to === state.prompt + state.output) {
        state.output++;
        times[state.id].push(now);
      }
    }
    const done = running.filter((state) => state.output === state.answer);
    running = running.filter((state) => state.output < state.answer);
    if (kind === "static") held += done.length; // their slots stay empty until the batch is over
    for (const { id } of done) freed[id] = now;
    if (kind === "static" && running.length === 0)
      for (const state of states) {
        if (state.output < state.answer || over.has(state.id)) continue;
        over.add(state.id);
        freed[state.id] = now;
      }
  }
  return { passes, times, freed };
}

/** Per request: time to first token, the longest gap between two tokens, the end; all in seconds. */
export function waits(requests, times) {
  return requests.map(({ arrival }, i) => {
    const at = times[i];
    let gap = 0;
    for (let j = 1; j < at.length; j++) gap = Math.max(gap, at[j] - at[j - 1]);
    return { ttft: at[0] - arrival / 1e3, gap, end: at.at(-1) };
  });
}

export const KINDS = ["static", "continuous", "chunked"];

/** The same workload under all three. */
export function compare(model, gpu, requests, { slots, budget }) {
  const here = deploy(model, gpu);
  return KINDS.map((kind) => {
    const { passes, times, freed } = serve(requests, {
      kind,
      slots,
      budget,
      seconds: (chunks) => passSeconds(here, chunks),
    });
    const each = waits(requests, times);
    return {
      kind,
      passes,
      times,
      freed,
      each,
      end: passes.at(-1).end,
      ttft: each.reduce((sum, one) => sum + one.ttft, 0) / each.length,
      worstTtft: Math.max(...each.map((one) => one.ttft)),
      gap: Math.max(...each.map((one) => one.gap)),
    };
  });
}
