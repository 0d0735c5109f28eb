// Batching: the learner draws how throughput grows with the batch; then one step to scale, and under it the bound, the
// memory wall, and latency.
import { parseNumber } from "../shared/answers.js";
import { explorer } from "../shared/explorer.js";
import { bytes, esc, fixed, int, num, tick } from "../shared/format.js";
import { batchSlider, bitsChoice, contextSlider, MODELS, modelChoice } from "../shared/models.js";
import { around, axes, dot, Labels, line, path, px, rect, svg } from "../shared/plot.js";
import { batchRows, bestBatch, MAX, memoryWall } from "./logic.js";
import { batchUpTo, strip } from "./strip.js";

const DRAWN = [1, 4, 16, 64, 256]; // the batches at which a guess is drawn
const SWEEP = Array.from({ length: 73 }, (_, i) => 2 ** (i / 8))
  .map((batch) => Math.round(batch))
  .filter((batch, i, all) => batch !== all[i - 1]);

const controls = (state) => [
  batchSlider(MAX),
  contextSlider(state),
  { kind: "number", key: "slo", label: "Slowest step allowed", unit: "ms", min: 1, max: 100, step: 0.5 },
  modelChoice,
  bitsChoice,
];

const rateAt = (state, gpu, batch) => batchRows(MODELS[state.model], gpu, state, [batch])[0].rate;
const flat = (state, gpu) => DRAWN.map(() => Math.round(rateAt(state, gpu, 1)));
const limits = (state, gpu) => ({ min: rateAt(state, gpu, 1) * 0.6, max: rateAt(state, gpu, 1) * MAX });

function question(state, { gpu }) {
  const at64 = rateAt(state, gpu, 64);
  const one = rateAt(state, gpu, 1);
  const explain = `Batch 64 gives ${num(at64 / one)} times the tokens of batch 1, not 64: the weights are read once for all, but each sequence reads its own KV cache.`;
  return {
    key: "batching-throughput",
    kind: "draw",
    text: `${MODELS[state.model].name} on ${gpu.name} writes ${int(one)} tokens/s at batch 1, ${int(state.context)} tokens of context each. Draw how that grows with the batch: drag the points, or type below the figure.`,
    explain,
    review: {
      question: `${MODELS[state.model].name} on ${gpu.name}, ${int(state.context)} tokens of context: tokens per second at batch 64, at best?`,
      answer: at64,
      unit: "tokens/s",
      tolerance: 0.25,
    },
    read: (_, env) => env.local.guess ?? flat(state, gpu),
    point: (guess) => guess[3],
    verdict: (guess) =>
      guess === null
        ? esc(explain)
        : `At batch 64 you drew <strong>${int(guess[3])}</strong>; the bound is <strong>${int(at64)} tokens/s</strong>. ${esc(explain)}`,
  };
}

/** The bound up to the memory wall, the wall, and the batch that is looked at. */
function bound(state, gpu, plot, clamp, labels) {
  const wall = memoryWall(MODELS[state.model], gpu, state);
  const rows = batchRows(MODELS[state.model], gpu, state, SWEEP);
  const at = (row) => [plot.X(row.batch), plot.Y(clamp(row.rate))];
  const here = batchRows(MODELS[state.model], gpu, state, [state.batch])[0];
  const [x, y] = at(here);
  labels.keepOff(x - 7, y - 7, 14, 14);
  const rate = `${num(here.rate, 4)} tokens/s`;
  const label = labels.put(rate, around(x, y, 10), { color: "blue-t", weight: 650 });
  const parts = [];
  if (wall < MAX) {
    const wallX = plot.X(Math.max(1, wall));
    const beyond = rows.filter((row) => row.batch >= Math.max(1, wall));
    parts.push(rect(wallX, plot.top, plot.right - wallX, plot.bottom - plot.top, { fill: "soft" }));
    parts.push(path(beyond.map(at), { color: "muted", width: 1.5, dash: "2 4" }));
    parts.push(line(wallX, plot.top, wallX, plot.bottom, { color: "orange", width: 2 }));
    const places = besides(wallX, plot);
    parts.push(labels.put(`memory full: ${int(wall)}`, places, { color: "orange-t", weight: 650 }));
  }
  const inside = rows.filter((row) => row.batch <= wall);
  if (inside.length) parts.push(path(inside.map(at), { color: "blue", width: 3 }));
  const mark = dot(x, y, { color: "blue", r: 7, hollow: here.limit === "capacity" });
  return parts.join("") + mark.replace("<circle", '<circle data-m="here"') + label;
}

/** Places on both sides of an upright line, at its foot and at its head. */
const besides = (x, plot) =>
  [plot.bottom - 10, plot.bottom - 28, plot.top + 14].flatMap((y) => [
    [x + 6, y, "start"],
    [x - 6, y, "end"],
  ]);

/** The guess as a line with a point for each batch; before the answer the points can be dragged. */
function guessed(guess, plot, clamp, { shown, still }, labels) {
  const at = guess.map((rate, i) => [plot.X(DRAWN[i]), plot.Y(clamp(rate))]);
  const parts = [path(at, { color: "purple", width: 2, dash: "7 4" })];
  at.forEach(([x, y], i) => {
    parts.push(dot(x, y, { color: "purple", r: shown ? 4 : 8 }));
    if (shown || still) return;
    parts.push(
      `<circle data-drag="guess-${i}" cx="${px(x)}" cy="${px(y)}" r="24" fill="transparent" style="cursor:ns-resize;touch-action:none"/>`,
    );
  });
  const [x, y] = at[2];
  const places = [
    [x, y - 14, "middle"],
    [x, y + 24, "middle"],
  ];
  return parts.join("") + labels.put("your guess", places, { color: "purple-t", weight: 650 });
}

function throughput(state, env, guess) {
  const { gpu, width, shown } = env;
  const height = 300;
  const range = limits(state, gpu);
  const plot = axes({
    width,
    height,
    left: 60,
    x: { min: 1, max: MAX, log: true, ticks: [1, 4, 16, 64, 256], label: "batch (sequences)" },
    y: { ...range, log: true, label: "throughput (tokens/s)" },
  });
  const clamp = (rate) => Math.min(range.max, Math.max(range.min, rate));
  const labels = Labels.within(plot, width);
  const one = rateAt(state, gpu, 1);
  const parts = [
    line(plot.X(1), plot.Y(one), plot.X(MAX), plot.Y(one * MAX), { color: "muted", width: 1, dash: "3 4" }),
    shown ? bound(state, gpu, plot, clamp, labels) : "",
    guess ? guessed(guess, plot, clamp, env, labels) : "",
  ];
  const scaling = [110, 40, 12].map((batch) => [plot.X(batch), plot.Y(one * batch * 1.9), "end"]);
  parts.push(labels.put("perfect scaling", scaling, { color: "muted" }));
  return {
    picture: svg(width, height, "Throughput against batch", plot.svg + parts.join("")),
    invert: (y) => clamp(plot.Y.invert(y)),
  };
}

function frontier(state, { gpu, width }) {
  const height = 300;
  const model = MODELS[state.model];
  const wall = memoryWall(model, gpu, state);
  const fitting = SWEEP.filter((batch) => batch < wall).concat(wall > 0 && wall <= MAX ? [wall] : []);
  const rows = batchRows(model, gpu, state, fitting);
  const here = batchRows(model, gpu, state, [state.batch])[0];
  const slowest = Math.max(...rows.map((row) => row.seconds * 1e3), here.seconds * 1e3);
  const fastest = Math.max(...rows.map((row) => row.rate), here.rate);
  const plot = axes({
    width,
    height,
    left: 60,
    x: { min: 0, max: Math.min(Math.max(slowest, state.slo) * 1.12, slowest * 3), label: "step = time per token (ms)" },
    y: { min: 0, max: fastest * 1.18, label: "throughput (tokens/s)" },
  });
  const labels = Labels.within(plot, width);
  const at = (row) => [plot.X(row.seconds * 1e3), plot.Y(row.rate)];
  const [x, y] = at(here);
  labels.keepOff(x - 7, y - 7, 14, 14);
  const mark = dot(x, y, { color: "blue", r: 7, hollow: here.limit === "capacity" });
  const name = labels.put(`batch ${int(state.batch)}`, around(x, y, 10), { color: "blue-t", weight: 650 });
  const parts = [];
  const slo = plot.X(state.slo);
  if (slo <= plot.right) {
    parts.push(rect(slo, plot.top, plot.right - slo, plot.bottom - plot.top, { fill: "soft" }));
    parts.push(line(slo, plot.top, slo, plot.bottom, { color: "green", width: 2, dash: "6 4" }));
    parts.push(labels.put(`limit ${tick(state.slo)} ms`, besides(slo, plot), { color: "green-t", weight: 650 }));
  }
  if (rows.length) parts.push(path(rows.map(at), { color: "blue", width: 3 }));
  const named = rows.filter(({ batch }) => [1, 8, 16, 32, 64, 128, 256, 512].includes(batch) || batch === wall);
  for (const row of named.reverse()) {
    const [px, py] = at(row);
    const end = row.batch === wall;
    const words = end ? `${int(row.batch)}: memory full` : int(row.batch);
    const places = [
      [px - 7, py - 6, "end"],
      [px - 7, py + 18, "end"],
    ];
    parts.push(end ? line(px, py - 9, px, py + 9, { color: "orange", width: 3 }) : dot(px, py, { r: 3.5 }));
    parts.push(labels.put(words, places, { color: end ? "orange-t" : "muted" }));
  }
  const moved = mark.replace("<circle", '<circle data-m="here-step"');
  return svg(width, height, "Throughput against latency", plot.svg + parts.join("") + moved + name);
}

function view(state, env) {
  const { gpu, shown, local } = env;
  const model = MODELS[state.model];
  const two = env.width >= 620;
  const width = two && shown ? Math.floor((env.width - 20) / 2) : env.width;
  const guess = shown ? local.guess : (local.guess ?? (env.still ? null : flat(state, gpu)));
  const left = throughput(state, { ...env, width }, guess);
  const boxes = shown
    ? ""
    : `<div class="row"><span class="note">Your guess in tokens/s at batch</span>${DRAWN.map((batch, i) => `<label>${batch} <input type="text" role="spinbutton" class="number-box" inputmode="decimal" autocomplete="off" aria-valuenow="${Math.round(guess[i])}" data-change="guess" data-index="${i}" data-key="guess-${i}" value="${Math.round(guess[i])}"></label>`).join("")}</div>`;
  const figure = `${shown ? strip(state, env) : ""}<div class="panels"><div class="panel">${left.picture}</div>${shown ? `<div class="panel fade" data-fade="frontier">${frontier(state, { ...env, width })}</div>` : ""}</div>${boxes}`;
  const here = batchRows(model, gpu, state, [state.batch])[0];
  const wall = memoryWall(model, gpu, state);
  const best = bestBatch(model, gpu, state, state.slo / 1e3);
  const bestRow = best ? batchRows(model, gpu, state, [best])[0] : null;
  const say = !shown
    ? `Your guess at batch 64: ${int(guess[3])} tokens/s. The bound comes when you commit.`
    : `Batch ${int(state.batch)}: ${num(here.seconds * 1e3, 4)} ms a step, ${num(here.rate, 4)} tokens/s, ${bytes(here.used)} of ${bytes(gpu.memory)}${here.limit === "capacity" ? ": it does not fit" : ""}. ` +
      (wall ? `Memory is full at ${int(wall)} sequences. ` : "The weights alone do not fit. ") +
      (best
        ? `Within ${tick(state.slo)} ms: batch ${int(best)}, ${num(bestRow.rate, 4)} tokens/s${best === wall ? ", where memory ends it before the limit does" : ""}.`
        : `No batch that fits keeps a step within ${tick(state.slo)} ms.`);
  const batches = [...new Set([1, 8, 32, 64, 128, 256, state.batch, best, wall])]
    .filter((batch) => batch >= 1)
    .sort((a, b) => a - b);
  const table = {
    caption: `Decode bound of ${model.name} on ${gpu.name}, ${int(state.context)} tokens of context, ${state.weight_bits}-bit weights`,
    head: ["Batch", "Step (ms)", "Tokens/s", "Memory (GB)", "Limit"],
    rows: batchRows(model, gpu, state, batches).map((row) => [
      int(row.batch),
      num(row.seconds * 1e3, 4),
      num(row.rate, 4),
      fixed(row.used / 1e9, 1),
      row.limit,
    ]),
    now: batches.indexOf(state.batch),
  };
  return { figure, say, table };
}

const change = (api, i, rate) => {
  const { state, env } = api;
  const guess = [...(env.local.guess ?? flat(state, env.gpu))];
  guess[i] = Math.round(rate);
  api.local({ guess });
};

export default explorer({
  name: "batching",
  title: "Batching explorer",
  defaults: { model: "llama-3-8b", gpu: "", weight_bits: 16, context: 2048, batch: 32, slo: 10 },
  controls,
  question,
  view,
  actions: {
    guess(api, { index, value }) {
      const { value: rate } = parseNumber(value, "tokens/s");
      if (rate > 0) change(api, Number(index), rate);
      else api.local({}); // drawn anew, with the number that was there
    },
  },
  drag(api, what, { x, y }) {
    if (what === "batch") return api.set({ batch: batchUpTo(x, api.state, api.env) });
    change(api, Number(what.slice(6)), throughput(api.state, { ...api.env, width: api.env.width }, null).invert(y));
  },
  nudge(api, _what, by) {
    api.set({ batch: Math.min(MAX, Math.max(1, api.state.batch + by)) });
  },
});
