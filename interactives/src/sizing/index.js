// Sizing calculator: a bill of bytes, the GPUs that pay it, and the fastest step they allow.
import { stops } from "../shared/controls.js";
import { explorer } from "../shared/explorer.js";
import { bytes, fixed, int, num, plural } from "../shared/format.js";
import { contextSlider, MODELS, modelChoice } from "../shared/models.js";
import { hatch, Labels, line, rect, svg, ticks } from "../shared/plot.js";
import { bill } from "./logic.js";

const controls = (state) => [
  { kind: "number", key: "n_gpus", label: "GPUs", min: 1, max: 16 },
  { kind: "number", key: "sequences", label: "Sequences at once", min: 1, max: 1024, stops: stops(1, 1024, 6) },
  contextSlider(state),
  { kind: "number", key: "reserve", label: "Kept free", unit: "% of memory", min: 0, max: 50 },
  {
    kind: "choice",
    key: "weight_bits",
    label: "Bits per weight",
    options: [
      [16, "16 (bf16)"],
      [8, "8"],
      [4, "4"],
    ],
  },
  {
    kind: "choice",
    key: "group",
    label: "16-bit scale for each",
    options: [
      [0, "no scales"],
      [32, "32 weights"],
      [64, "64 weights"],
      [128, "128 weights"],
    ],
  },
  {
    kind: "choice",
    key: "kv_bits",
    label: "KV cache",
    options: [
      [16, "16 bits a value"],
      [8, "8 bits a value"],
    ],
  },
  modelChoice,
];

function question(state, { gpu }) {
  const model = MODELS[state.model];
  const found = bill(model, gpu, state);
  return {
    key: "sizing-gpus",
    kind: "number",
    text: `${model.name}, ${state.weight_bits} bits a weight, ${plural(state.sequences, "sequence")} of ${int(state.context)} tokens. How many GPUs hold it: ${gpu.name}, ${bytes(gpu.memory, 2)} each, ${state.reserve} % of each kept free?`,
    unit: "GPUs",
    answer: found.needed,
    show: int(found.needed),
    tolerance: 0,
    explain: `Weights ${bytes(found.payload + found.scales)}, KV cache ${bytes(found.kv)}; each GPU offers ${bytes(gpu.memory * (1 - state.reserve / 100))}.`,
  };
}

const PARTS = [
  ["weights", "blue", "payload"],
  ["scales", "purple", "scales"],
  ["KV cache", "orange", "kv"],
];
const BAR = { top: 64, height: 46 };

/** The GPUs side by side, the reserve of each hatched. */
function cards(state, gpu, X, id, labels) {
  const parts = [`<defs>${hatch(`${id}-free`)}</defs>`];
  const name = (i) => (state.n_gpus > 1 ? `GPU ${i + 1}` : gpu.name);
  for (let i = 0; i < state.n_gpus; i++) {
    const [from, to] = [X(i * gpu.memory), X((i + 1) * gpu.memory)];
    const free = (to - from) * (state.reserve / 100);
    parts.push(rect(from, BAR.top, to - from, BAR.height, { fill: "soft", stroke: "muted" }));
    if (free) parts.push(rect(to - free, BAR.top, free, BAR.height, { fill: `url(#${id}-free)` }));
    const place = [(from + to) / 2, BAR.top + BAR.height + 17, "middle"];
    if (to - from > 24) parts.push(labels.put(name(i), [place], { color: "muted", halo: false }));
  }
  return parts.join("");
}

/** Where a byte lies: parts are laid over the GPUs in turn, and the reserve at the end of each is left out. */
const placeOf = (size, usable, memory) => {
  const card = Math.floor(size / usable + 1e-12);
  return card * memory + (size - card * usable);
};

/** One part of the bill, from byte `from` to byte `to`, cut at the ends of the GPUs; what is beyond the last is paler. */
function segments(from, to, color, usable, { gpu, n, X }) {
  const parts = [];
  for (let at = from; at < to - 1; ) {
    const card = Math.floor(at / usable + 1e-12);
    const end = Math.min(to, (card + 1) * usable);
    const wide = Math.max(1, X(end - at) - X(0));
    const opacity = card >= n ? 0.45 : 1;
    const x = X(placeOf(at, usable, gpu.memory));
    parts.push(rect(x, BAR.top + 5, wide, BAR.height - 10, { fill: color, opacity }));
    at = end;
  }
  return parts.join("");
}

function content(found, state, gpu, X, labels) {
  const usable = gpu.memory * (1 - state.reserve / 100);
  const parts = [];
  let at = 0;
  for (const [name, color, key] of PARTS) {
    const to = at + found[key];
    parts.push(segments(at, to, color, usable, { gpu, n: state.n_gpus, X }));
    const middle = X(placeOf((at + to) / 2, usable, gpu.memory));
    const rows = [0, 1, 2].map((row) => BAR.top - 8 - row * 17);
    const places = rows.flatMap((y) => [
      [middle, y, "middle"],
      [middle - 6, y, "start"],
      [middle + 6, y, "end"],
    ]);
    const words = `${name} ${bytes(found[key])}`;
    if (found[key] > 0) parts.push(labels.put(words, places, { color: `${color}-t`, weight: 650 }));
    at = to;
  }
  if (found.need <= usable * state.n_gpus) return parts.join("");
  const end = X(found.total);
  const y = BAR.top + BAR.height + 36;
  const words = `memory ends at ${bytes(found.total)}`;
  parts.push(line(end, BAR.top - 4, end, BAR.top + BAR.height + 6, { color: "ink", width: 3 }));
  const places = [
    [end, y, "middle"],
    [end + 4, y, "end"],
    [end - 4, y, "start"],
  ];
  return parts.join("") + labels.put(words, places, { weight: 650 });
}

function picture(found, state, { gpu, width, shown, id }) {
  const height = 192;
  const [left, right] = [6, width - 6];
  const usable = gpu.memory * (1 - state.reserve / 100);
  const most = shown ? Math.max(found.total, placeOf(found.need, usable, gpu.memory)) : found.total;
  const X = (value) => left + (value / (most * 1.02)) * (right - left);
  const labels = new Labels(width, height);
  const parts = [cards(state, gpu, X, id, labels)];
  if (shown) parts.push(content(found, state, gpu, X, labels));
  const axis = height - 22;
  parts.push(line(left, axis - 8, right, axis - 8, { color: "muted", width: 1 }));
  parts.push(labels.put("GB", [[right, axis + 9, "end"]], { color: "muted", halo: false }));
  for (const value of ticks({ min: 0, max: most / 1e9 }, Math.max(3, Math.round(width / 110)))) {
    const x = X(value * 1e9);
    parts.push(line(x, axis - 8, x, axis - 4, { color: "muted", width: 1 }));
    const place = value === 0 ? [x, axis + 9, "start"] : [x, axis + 9, "middle"];
    parts.push(labels.put(int(value), [place], { color: "muted", halo: false }));
  }
  const words = `${bytes(found.need)} on ${plural(state.n_gpus, "GPU")} of ${bytes(gpu.memory)}`;
  return svg(width, height, words, parts.join(""));
}

function view(state, env) {
  const model = MODELS[state.model];
  const { gpu, shown } = env;
  const found = bill(model, gpu, state);
  const on = state.n_gpus === 1 ? gpu.name : `${int(state.n_gpus)} × ${gpu.name}`;
  const say = !shown
    ? `${on}: ${bytes(found.total)}, of which ${bytes(found.reserve)} are kept free.`
    : `${model.name} with ${plural(state.sequences, "sequence")} of ${int(state.context)} tokens takes ${bytes(found.need)}. ` +
      (found.fits
        ? `It fits on ${on}${found.needed < state.n_gpus ? ` (${int(found.needed)} would do)` : ""}: at best ${num(found.step * 1e3, 3)} ms a step, ${num(found.rate, 3)} tokens/s together, ${found.limit === "bandwidth" ? "memory-bound" : "compute-bound"}. Room for ${plural(found.most, "sequence")} in all.`
        : `It does not fit on ${on}: ${int(found.needed)} are needed${found.most ? `, or at most ${plural(found.most, "sequence")}.` : found.payload + found.scales > found.total - found.reserve ? ": the weights alone are too large." : "."}`);
  const verdict = shown
    ? `<p class="${found.fits ? "right" : "wrong"}">${found.fits ? "✓ Fits" : "✗ Does not fit"}${found.fits ? "" : `: ${int(found.needed)} GPUs needed`}</p>`
    : "";
  const rows = [
    [`Weights, ${state.weight_bits} bits`, found.payload, `${int(model.params)} parameters`],
    ["Scales", found.scales, state.group ? `16 bits for each ${state.group}` : "none"],
    ["KV cache", found.kv, `${int(found.kvPerToken)} bytes a token: ${model.kvHeads} of ${model.heads} heads`],
    ["Kept free", found.reserve, `${state.reserve} % of ${bytes(found.total)}`],
    ["Together", found.need + found.reserve, `${int(found.needed)} × ${bytes(gpu.memory)} needed`],
  ];
  const table = {
    caption: `Bill of bytes for ${model.name} on ${on}; a step takes ${num(found.step * 1e3, 3)} ms at best`,
    head: ["For", "GB", "Because"],
    rows: rows.map(([name, size, why]) => [name, fixed(size / 1e9, 2), why]),
    now: 4,
  };
  return { figure: verdict + picture(found, state, env), say, table };
}

export default explorer({
  name: "sizing",
  title: "Sizing calculator",
  defaults: {
    model: "llama-3-70b",
    gpu: "",
    weight_bits: 16,
    group: 0,
    kv_bits: 16,
    sequences: 16,
    context: 8192,
    reserve: 10,
    n_gpus: 2,
  },
  controls,
  question,
  view,
});
