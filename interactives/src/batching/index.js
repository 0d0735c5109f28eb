// Batching: the learner draws how throughput grows with the batch; then the bound, the memory wall, and latency.
import { parseNumber } from "../shared/answers.js";
import { explorer } from "../shared/explorer.js";
import { bytes, esc, fixed, int, num, tick } from "../shared/format.js";
import { batchSlider, bitsChoice, contextSlider, MODELS, modelChoice } from "../shared/models.js";
import { axes, dot, line, path, px, rect, svg, text } from "../shared/plot.js";
import { batchRows, bestBatch, memoryWall } from "./logic.js";

const DRAWN = [1, 4, 16, 64, 256]; // the batches at which a guess is drawn
const MAX = 512;
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

function throughput(state, { gpu, width, shown, still }, guess) {
  const height = 300;
  const range = limits(state, gpu);
  const plot = axes({
    width,
    height,
    left: 54,
    x: { min: 1, max: MAX, log: true, ticks: [1, 4, 16, 64, 256], label: "batch (sequences)" },
    y: { ...range, log: true, label: "throughput (tokens/s)" },
  });
  const clamp = (rate) => Math.min(range.max, Math.max(range.min, rate));
  const parts = [];
  const one = rateAt(state, gpu, 1);
  const perfect = () => {
    parts.push(line(plot.X(1), plot.Y(one), plot.X(MAX), plot.Y(one * MAX), { color: "muted", width: 1, dash: "3 4" }));
    parts.push(text(plot.X(110), plot.Y(one * 210), "perfect scaling", { color: "muted", anchor: "end" }));
  };
  if (!shown) perfect();
  if (shown) {
    const wall = memoryWall(MODELS[state.model], gpu, state);
    const rows = batchRows(MODELS[state.model], gpu, state, SWEEP);
    const inside = rows.filter((row) => row.batch <= wall);
    const beyond = rows.filter((row) => row.batch >= Math.max(1, wall));
    const at = (row) => [plot.X(row.batch), plot.Y(clamp(row.rate))];
    if (wall < MAX) {
      const x = plot.X(Math.max(1, wall));
      parts.push(rect(x, plot.top, plot.right - x, plot.bottom - plot.top, { fill: "soft" }));
      parts.push(path(beyond.map(at), { color: "muted", width: 1.5, dash: "2 4" }));
      parts.push(line(x, plot.top, x, plot.bottom, { color: "orange", width: 2 }));
      const flip = x > width * 0.55;
      parts.push(
        text(x + (flip ? -6 : 6), plot.bottom - 10, `memory full: ${int(wall)}`, {
          anchor: flip ? "end" : "start",
          color: "orange-t",
          weight: 650,
        }),
      );
    }
    perfect();
    if (inside.length) parts.push(path(inside.map(at), { color: "blue", width: 3 }));
    const here = batchRows(MODELS[state.model], gpu, state, [state.batch])[0];
    const [x, y] = at(here);
    parts.push(dot(x, y, { color: "blue", r: 7, hollow: here.limit === "capacity" }));
    const left = x > width * 0.6;
    parts.push(
      text(x + (left ? -11 : 11), y + (left ? -12 : 22), `${num(here.rate, 4)} tokens/s`, {
        anchor: left ? "end" : "start",
        color: "blue-t",
        weight: 650,
      }),
    );
  }
  if (guess) {
    const at = guess.map((rate, i) => [plot.X(DRAWN[i]), plot.Y(clamp(rate))]);
    parts.push(path(at, { color: "purple", width: 2, dash: "7 4" }));
    at.forEach(([x, y], i) => {
      parts.push(dot(x, y, { color: "purple", r: shown ? 4 : 8 }));
      if (!shown && !still)
        parts.push(
          `<circle data-drag="guess-${i}" cx="${px(x)}" cy="${px(y)}" r="24" fill="transparent" style="cursor:ns-resize;touch-action:none"/>`,
        );
    });
    const [x, y] = at[2];
    parts.push(text(x, y - 14, "your guess", { anchor: "middle", color: "purple-t", weight: 650 }));
  }
  return {
    picture: svg(width, height, "Throughput against batch", plot.svg + parts.join("")),
    invert: (y) => clamp(plot.Y.invert(y)),
  };
}

function frontier(state, { gpu, width }) {
  const height = 300;
  const model = MODELS[state.model];
  const wall = memoryWall(model, gpu, state);
  const rows = batchRows(
    model,
    gpu,
    state,
    SWEEP.filter((batch) => batch < wall).concat(wall > 0 && wall <= MAX ? [wall] : []),
  );
  const here = batchRows(model, gpu, state, [state.batch])[0];
  const slowest = Math.max(...rows.map((row) => row.seconds * 1e3), here.seconds * 1e3);
  const fastest = Math.max(...rows.map((row) => row.rate), here.rate);
  const plot = axes({
    width,
    height,
    left: 54,
    x: { min: 0, max: Math.min(Math.max(slowest, state.slo) * 1.12, slowest * 3), label: "step = time per token (ms)" },
    y: { min: 0, max: fastest * 1.18, label: "throughput (tokens/s)" },
  });
  const parts = [];
  const slo = Math.min(plot.right, plot.X(state.slo));
  if (plot.X(state.slo) <= plot.right) {
    parts.push(rect(slo, plot.top, plot.right - slo, plot.bottom - plot.top, { fill: "soft" }));
    parts.push(line(slo, plot.top, slo, plot.bottom, { color: "green", width: 2, dash: "6 4" }));
    const flip = slo > width * 0.6;
    parts.push(
      text(slo + (flip ? -6 : 6), plot.bottom - 10, `limit ${tick(state.slo)} ms`, {
        anchor: flip ? "end" : "start",
        color: "green-t",
        weight: 650,
      }),
    );
  }
  const at = (row) => [plot.X(row.seconds * 1e3), plot.Y(row.rate)];
  if (rows.length) parts.push(path(rows.map(at), { color: "blue", width: 3 }));
  let last = -100;
  for (const row of rows.filter(({ batch }) => [1, 8, 16, 32, 64, 128, 256, 512].includes(batch) || batch === wall)) {
    const [x, y] = at(row);
    const end = row.batch === wall;
    parts.push(end ? line(x, y - 9, x, y + 9, { color: "orange", width: 3 }) : dot(x, y, { r: 3.5, color: "blue" }));
    if (y < last - 15 || last < 0 || end) {
      parts.push(
        text(x - 7, y - 6, end ? `${int(row.batch)}: memory full` : int(row.batch), {
          anchor: "end",
          color: end ? "orange-t" : "muted",
        }),
      );
      last = y;
    }
  }
  const [x, y] = at(here);
  parts.push(dot(x, y, { color: "blue", r: 7, hollow: here.limit === "capacity" }));
  parts.push(
    text(x + 11, y + (x > width - 80 ? 28 : 16), `batch ${int(state.batch)}`, {
      color: "blue-t",
      weight: 650,
      anchor: x > width - 80 ? "end" : "start",
    }),
  );
  return svg(width, height, "Throughput against latency", plot.svg + parts.join(""));
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
  const figure = `<div class="panels"><div class="panel">${left.picture}</div>${shown ? `<div class="panel fade" data-fade="frontier">${frontier(state, { ...env, width })}</div>` : ""}</div>${boxes}`;
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
  drag(api, what, { y }) {
    change(api, Number(what.slice(6)), throughput(api.state, { ...api.env, width: api.env.width }, null).invert(y));
  },
});
