// Sizing calculator: a bill of bytes, the GPUs that pay it, and the fastest step they allow.
import { stops } from "../shared/controls.js";
import { explorer } from "../shared/explorer.js";
import { bytes, fixed, int, num, plural } from "../shared/format.js";
import { contextSlider, MODELS, modelChoice } from "../shared/models.js";
import { hatch, line, rect, svg, text, ticks } from "../shared/plot.js";
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

function picture(found, state, { gpu, width, shown, id }) {
  const n = state.n_gpus;
  const barTop = 64;
  const barHeight = 46;
  const height = 192;
  const [left, right] = [6, width - 6];
  const most = shown ? Math.max(found.total, found.need + found.reserve) : found.total;
  const X = (value) => left + (value / (most * 1.02)) * (right - left);
  const parts = [`<defs>${hatch(`${id}-free`)}</defs>`];
  for (let i = 0; i < n; i++) {
    const [from, to] = [X(i * gpu.memory), X((i + 1) * gpu.memory)];
    parts.push(rect(from, barTop, to - from, barHeight, { fill: "soft", stroke: "muted" }));
    if (state.reserve)
      parts.push(
        rect(to - (to - from) * (state.reserve / 100), barTop, (to - from) * (state.reserve / 100), barHeight, {
          fill: `url(#${id}-free)`,
        }),
      );
    if (to - from > 66)
      parts.push(
        text((from + to) / 2, barTop + barHeight + 17, n > 1 ? `GPU ${i + 1}` : gpu.name, {
          anchor: "middle",
          color: "muted",
          halo: false,
        }),
      );
  }
  if (shown) {
    // Each part is laid over the GPUs in turn; the reserve at the end of each is left out.
    let at = 0;
    const usable = gpu.memory * (1 - state.reserve / 100);
    const place = (size) => Math.floor(size / usable) * gpu.memory + (size % usable);
    let labelAt = -1;
    for (const [name, color, key] of PARTS) {
      let [from, to] = [at, at + found[key]];
      const first = from;
      while (from < to - 1) {
        const end = Math.min(to, (Math.floor(from / usable + 1e-12) + 1) * usable);
        const x = X(
          Math.floor(from / usable + 1e-12) * gpu.memory + (from - Math.floor(from / usable + 1e-12) * usable),
        );
        const beyond = Math.floor(from / usable + 1e-12) >= n;
        parts.push(
          rect(x, barTop + 5, Math.max(1, X(end - from) - X(0)), barHeight - 10, {
            fill: color,
            opacity: beyond ? 0.45 : 1,
          }),
        );
        from = end;
      }
      at = to;
      if (found[key] > 0) {
        const middle = X(place((first + to) / 2));
        labelAt++;
        const y = barTop - 8 - (labelAt % 3) * 17;
        const anchor = middle < 90 ? "start" : middle > width - 110 ? "end" : "middle";
        const x =
          anchor === "start"
            ? Math.max(left, X(place(first)))
            : anchor === "end"
              ? Math.min(right, middle + 20)
              : middle;
        parts.push(text(x, y, `${name} ${bytes(found[key])}`, { anchor, color: `${color}-t`, weight: 650 }));
      }
    }
    if (found.need > usable * n) {
      parts.push(line(X(found.total), barTop - 4, X(found.total), barTop + barHeight + 6, { color: "ink", width: 3 }));
      parts.push(
        text(X(found.total), barTop + barHeight + 36, `memory ends at ${bytes(found.total)}`, {
          anchor: X(found.total) > width - 120 ? "end" : "middle",
          weight: 650,
        }),
      );
    }
  }
  const axis = height - 22;
  for (const value of ticks({ min: 0, max: most / 1e9 }, Math.max(3, Math.round(width / 110)))) {
    const x = X(value * 1e9);
    parts.push(line(x, axis - 8, x, axis - 4, { color: "muted", width: 1 }));
    parts.push(
      text(x, axis + 9, int(value), {
        anchor: value === 0 ? "start" : x > width - 30 ? "end" : "middle",
        color: "muted",
        halo: false,
      }),
    );
  }
  parts.push(line(left, axis - 8, right, axis - 8, { color: "muted", width: 1 }));
  parts.push(text(right, height - 1, "GB", { anchor: "end", color: "muted", halo: false }));
  return svg(width, height, `${bytes(found.need)} on ${plural(n, "GPU")} of ${bytes(gpu.memory)}`, parts.join(""));
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
        ? `It fits on ${on}${found.needed < state.n_gpus ? ` (${int(found.needed)} would do)` : ""}: at best ${num(found.step * 1e3, 3)} ms a step, ${num(found.rate, 3)} tokens/s together, ${found.limit} binds. Room for ${plural(found.most, "sequence")} in all.`
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
