// Roofline: decode and prefill of one model as two dots under the GPU's roof; how far a growing batch can move decode.
import { stopBeside, stops } from "../shared/controls.js";
import { explorer } from "../shared/explorer.js";
import { fixed, int, num, percent, tick } from "../shared/format.js";
import { batchSlider, bitsChoice, contextSlider, MODELS, modelChoice } from "../shared/models.js";
import { around, axes, c, dot, grip, Labels, line, path, px, scale, svg, text, ticks } from "../shared/plot.js";
import { attainable, batchAt, promptAt, roofline, rows } from "./logic.js";

const PROMPTS = stops(1, 32768, 4);

const controls = (state) => [
  batchSlider(),
  contextSlider(state),
  {
    kind: "number",
    key: "prompt",
    label: "Prompt to prefill",
    unit: "tokens",
    min: 1,
    max: 32768,
    stops: PROMPTS,
  },
  modelChoice,
  bitsChoice,
];

function question(state, { gpu }) {
  const found = roofline(MODELS[state.model], gpu, state);
  const naive = found.computeBoundBatch;
  const options = [
    {
      text: `About batch ${int(naive)}`,
      value: naive,
      explain:
        "From there the linear layers are compute-bound. The step as a whole is not: each sequence also reads its own KV cache.",
    },
    {
      text: "At no batch size",
      value: null,
      explain: "This context is short enough: the FLOPs that a sequence adds outgrow the bytes of its KV cache.",
    },
  ];
  const other = found.crossingBatch ?? 2 * naive;
  if (Math.abs(other - naive) > 0.1 * naive)
    options.splice(1, 0, {
      text: `About batch ${int(other)}`,
      value: other,
      explain: "No batch is large enough: each further sequence adds its own bytes with its FLOPs.",
    });
  const right =
    found.crossingBatch === null
      ? options.find((one) => one.value === null)
      : options.find((one) => one.value !== null && Math.abs(one.value - found.crossingBatch) <= 0.1 * naive);
  right.correct = true;
  const tends = `With a growing batch decode tends to ${num(found.ceiling)} FLOP per byte; the ridge is ${num(found.ridge)}.`;
  return {
    key: "roofline-crossing",
    kind: "choice",
    text: `${MODELS[state.model].name} on ${gpu.name}, ${int(state.context)} tokens of context for each sequence. From which batch on does a decode step as a whole, attention included, need longer for its arithmetic than for its reading?`,
    options: options.map(({ text: words, correct, explain }) => ({ text: words, correct, explain })),
    explain: `${tends} Memory is full at ${int(found.maxBatch)} sequences.`,
  };
}

/** One decode step to scale: what its bytes and its arithmetic take, in the linear layers and then in attention. */
function stepBars(found, { width }) {
  const [left, row, top] = [52, 24, 22];
  const height = top + 2 * row + 40;
  const X = scale({ min: 0, max: found.step * 1e3 * 1.02 }, left, width - 10);
  const labels = new Labels(width, height);
  const parts = [];
  const names = [
    ["weights", "KV cache"],
    ["linear layers", "attention"],
  ];
  const rows = [
    ["bytes", "memory", "memorySeconds"],
    ["work", "work", "computeSeconds"],
  ];
  rows.forEach(([label, color, key], i) => {
    const y = top + i * row;
    parts.push(text(left - 8, y + 15, label, { anchor: "end", color: `${color}-t`, weight: 650, halo: false }));
    let start = 0;
    found.stages.forEach((stage, j) => {
      const [from, to] = [X(start * 1e3), X((start + stage[key]) * 1e3)];
      const wide = Math.max(1, to - from - (j ? 0 : 1));
      parts.push(bar(from, y + 3, wide, row - 6, color, `${key}-${j}`, j ? 0.62 : 1));
      const inside = names[i][j].length * 7 < wide;
      if (inside) parts.push(text(from + 6, y + 16, names[i][j], { color: "bg", halo: false, weight: 650 }));
      start += stage.seconds;
    });
  });
  const end = X(found.step * 1e3);
  parts.push(line(end, top - 6, end, top + 2 * row + 4, { color: "ink", width: 2 }));
  const between = X(found.stages[0].seconds * 1e3);
  parts.push(line(between, top - 2, between, top + 2 * row + 2, { color: "muted", width: 1, dash: "3 3" }));
  parts.push(labels.put(`one step: ${num(found.step * 1e3, 4)} ms`, [[end, 13, "end"]], { weight: 650 }));
  for (const value of ticks({ min: 0, max: found.step * 1e3 }, Math.max(2, Math.round(width / 120)))) {
    parts.push(line(X(value), top + 2 * row + 4, X(value), top + 2 * row + 8, { color: "muted", width: 1 }));
    const place = [X(value), top + 2 * row + 22, "middle"];
    parts.push(labels.put(value ? tick(value) : "0 ms", [place], { color: "muted", halo: false }));
  }
  const [linear, attention] = found.stages;
  const words = `Linear layers: reading takes ${num(linear.memorySeconds * 1e3)} ms, computing ${num(linear.computeSeconds * 1e3)} ms. Attention: ${num(attention.memorySeconds * 1e3)} and ${num(attention.computeSeconds * 1e3)} ms`;
  return svg(width, height, words, parts.join(""));
}

const bar = (x, y, width, height, color, name, opacity = 1) =>
  `<rect data-m="${name}" x="${px(x)}" y="${px(y)}" width="${px(width)}" height="${px(height)}" rx="2" fill="${c(color)}"${opacity < 1 ? ` opacity="${opacity}"` : ""}/>`;

/** How far a growing batch moves decode, until memory is full, and where it would end without that. */
function growth(found, state, { gpu }, { plot, at, x }, labels) {
  const parts = [];
  if (found.maxBatch > 0) {
    const [first, last] = [1, found.maxBatch].map(
      (batch) => roofline(MODELS[state.model], gpu, { ...state, batch }).decode,
    );
    const trail = [at(first), ...(first < found.ridge && last > found.ridge ? [at(found.ridge)] : []), at(last)];
    parts.push(`<g opacity="0.4">${path(trail, { color: "memory", width: 11 })}</g>`);
    const ends = [
      [found.maxBatch, trail.at(-1)],
      [1, trail[0]],
    ];
    for (const [batch, [px, py]] of ends) {
      parts.push(labels.put(int(batch), [[px - 9, py - 7, "end"]], { size: 11, color: "muted" }));
    }
  }
  if (found.ceiling < x.max) {
    const [limitX, limitY] = at(found.ceiling);
    parts.push(line(limitX, limitY - 26, limitX, plot.bottom, { color: "memory", width: 1.5, dash: "6 4" }));
    const places = [
      [limitX - 5, limitY - 32, "end"],
      [limitX + 5, limitY - 32, "start"],
      [limitX + 5, plot.bottom - 26, "start"],
    ];
    parts.push(labels.put(`decode ends at ${num(found.ceiling)}`, places, { color: "memory-t" }));
  }
  return parts.join("");
}

const intensities = { min: 0.5, max: 20000, log: true, label: "arithmetic intensity (FLOP per byte)" };
const LEFT = 46;

/** The handles on the two dots. */
function grips(found, state, at) {
  const spoken = (value, many) => `${int(value)} ${many}`;
  const decode = grip(...at(found.decode), {
    what: "batch",
    ...{ label: "Decode dot", now: state.batch, min: 1, max: 1024, words: spoken(state.batch, "sequences") },
    knob: false,
  });
  const prefill = grip(...at(found.prefill), {
    what: "prompt",
    ...{ label: "Prefill dot", now: state.prompt, min: 1, max: 32768, words: spoken(state.prompt, "tokens") },
    knob: false,
  });
  return prefill + decode;
}

/** The line plot: what the GPU reaches at each intensity, decode and prefill under it. */
function picture(found, state, env) {
  const { gpu, width, shown } = env;
  const narrow = width < 480;
  const height = narrow ? 280 : 330;
  const x = intensities;
  const tera = (intensity) => attainable(gpu, intensity) / 1e12;
  const y = { min: tera(x.min), max: (gpu.peak / 1e12) * 2.4, log: true, label: "at best (TFLOP/s)" };
  const plot = axes({ width, height, left: LEFT, x, y });
  const at = (intensity) => {
    const inside = Math.min(x.max, Math.max(x.min, intensity));
    return [plot.X(inside), plot.Y(tera(inside))];
  };
  const labels = Labels.within(plot, width);
  const full = found.limit === "capacity";
  const dots = [
    [found.decode, "memory", `decode, batch ${int(state.batch)}`, full ? ", does not fit" : "", full],
    [found.prefill, "work", narrow ? "prefill" : `prefill, ${int(state.prompt)} tokens`, "", false],
  ];
  for (const [intensity] of dots) labels.keepOff(at(intensity)[0] - 7, at(intensity)[1] - 7, 14, 14);
  for (let below = x.min; below < found.ridge; below *= 1.15) labels.keepOff(at(below)[0] - 2, at(below)[1] - 2, 4, 4);
  const named = dots.map(([intensity, color, name, more, hollow]) => {
    const [px, py] = at(intensity);
    const words = [name, `${num(intensity)} FLOP/B${more}`];
    const [right, ...others] = around(px, py);
    const label = labels.put(words, [right, [px - 12, py + 20, "end"], ...others], {
      color: `${color}-t`,
      weight: 650,
    });
    return movable(dot(px, py, { color, r: 7, hollow }), `dot-${color}`) + label;
  });
  const [ridgeX, ridgeY] = at(found.ridge);
  const parts = [line(ridgeX, ridgeY, ridgeX, plot.bottom, { color: "muted", width: 1, dash: "3 4" })];
  const peak = `${fixed(gpu.peak / 1e12, gpu.peak % 1e12 ? 1 : 0)} TFLOP/s`;
  parts.push(labels.put(peak, [[plot.right, plot.Y(gpu.peak / 1e12) - 9, "end"]], { color: "muted" }));
  const ground = [
    [ridgeX + 5, plot.bottom - 8, "start"],
    [ridgeX - 5, plot.bottom - 8, "end"],
  ];
  parts.push(labels.put(`ridge ${num(found.ridge)}`, ground, { color: "muted" }));
  if (shown) parts.push(growth(found, state, env, { plot, at, x }, labels));
  parts.push(path([at(x.min), at(found.ridge), at(x.max)], { color: "ink", width: 2 }));
  const [sx, sy] = at(narrow ? 1.4 : 1.2);
  parts.push(
    labels.put(
      `${num(gpu.bandwidth / 1e12)} TB/s`,
      [
        [sx - 8, sy - 14, "end"],
        [sx - 20, sy - 26, "middle"],
      ],
      { color: "muted" },
    ),
  );
  const handles = shown && !env.still ? grips(found, state, at) : "";
  const words = `Roofline of ${gpu.name}: decode at ${num(found.decode)}, prefill at ${num(found.prefill)}, ridge at ${num(found.ridge)} FLOP per byte`;
  return svg(width, height, words, plot.svg + parts.join("") + named.join("") + handles);
}

const movable = (element, name) => element.replace(/^<\w+/, (tag) => `${tag} data-m="${name}"`);

function view(state, env) {
  const model = MODELS[state.model];
  const { gpu } = env;
  const found = roofline(model, gpu, state);
  const binds = {
    bandwidth: "memory-bound",
    arithmetic: "compute-bound",
    capacity: "and it does not fit into memory",
  }[found.limit];
  const crossing =
    found.crossingBatch === null
      ? `No batch takes it over the ridge: that needs a context below ${int(found.crossingContext)} tokens.`
      : `${state.batch >= found.crossingBatch ? "It is over the ridge from" : "It would cross the ridge from"} batch ${int(found.crossingBatch)} on${found.crossingBatch > found.maxBatch ? `, but only ${int(found.maxBatch)} sequences fit` : ""}.`;
  const say =
    `Decode at batch ${int(state.batch)} and ${int(state.context)} tokens of context: ${num(found.decode)} FLOP per byte, ridge ${num(found.ridge)}, ${binds}: ` +
    `${num(found.step * 1e3, 4)} ms a step, ${num(found.rate, 4)} tokens/s, ${percent(found.share, 1)} of peak arithmetic. ` +
    (env.shown ? `${crossing} ` : "") +
    `Prefill of ${int(state.prompt)} tokens: ${num(found.prefill)} FLOP per byte, ${found.prefillLimit === "bandwidth" ? "memory-bound" : "compute-bound"}.`;
  const batches = [...new Set([1, 8, 32, 64, state.batch, found.maxBatch])]
    .filter((batch) => batch > 0)
    .sort((a, b) => a - b);
  const table = {
    caption: `Decode of ${model.name} on ${gpu.name}, ${int(state.context)} tokens of context, ${state.weight_bits}-bit weights`,
    head: ["Batch", "FLOP per byte", "Step (ms)", "Tokens/s", "Limit"],
    rows: rows(model, gpu, state, batches).map((row) => [
      int(row.batch),
      num(row.decode),
      num(row.step * 1e3, 4),
      num(row.rate, 4),
      row.limit,
    ]),
    now: batches.indexOf(state.batch),
  };
  const trail = `<span><i style="background:${c("memory")};opacity:.4"></i>decode from batch 1 to ${int(found.maxBatch)}, where memory is full</span>`;
  const key = `<p class="key"><span><i style="background:${c("memory")}"></i>bytes to move</span><span><i style="background:${c("work")}"></i>work to do</span>${env.shown ? trail : ""}</p>`;
  const caption =
    '<p class="note">One decode step. In each part the longer bar is the time it takes; while the other is shorter, that side of the GPU idles. Drag the dots under the roof to change the batch and the prompt.</p>';
  const figure = (env.shown ? stepBars(found, env) + caption : "") + picture(found, state, env) + key;
  return { figure, say, table };
}

export default explorer({
  name: "roofline",
  title: "Roofline explorer",
  defaults: { model: "llama-3-8b", gpu: "", weight_bits: 16, batch: 8, context: 2048, prompt: 2000 },
  controls,
  question,
  view,
  drag(api, what, { x }) {
    const { state, env } = api;
    const intensity = scale(intensities, LEFT, env.width - 14).invert(x);
    const model = MODELS[state.model];
    if (what === "batch") api.set({ batch: batchAt(model, env.gpu, state, intensity, batchSlider().stops) });
    else api.set({ prompt: promptAt(model, env.gpu, state, intensity, PROMPTS) });
  },
  nudge(api, what, by) {
    const list = what === "batch" ? batchSlider().stops : PROMPTS;
    api.set({ [what]: stopBeside(list, api.state[what], by) });
  },
});
