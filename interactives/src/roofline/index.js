// Roofline: decode and prefill of one model as two dots under the GPU's roof; how far a growing batch can move decode.
import { stops } from "../shared/controls.js";
import { explorer } from "../shared/explorer.js";
import { fixed, int, num, percent } from "../shared/format.js";
import { batchSlider, bitsChoice, contextSlider, MODELS, modelChoice } from "../shared/models.js";
import { axes, c, dot, line, path, px, svg, text } from "../shared/plot.js";
import { attainable, roofline, rows } from "./logic.js";

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
    stops: stops(1, 32768, 4),
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

function picture(found, state, { gpu, width, shown }) {
  const narrow = width < 480;
  const height = narrow ? 300 : 360;
  const x = { min: 0.5, max: 20000, log: true, label: "arithmetic intensity (FLOP per byte)" };
  const tera = (intensity) => attainable(gpu, intensity) / 1e12;
  const y = { min: tera(x.min), max: (gpu.peak / 1e12) * 2.4, log: true, label: "at best (TFLOP/s)" };
  const plot = axes({ width, height, left: 46, x, y });
  const at = (intensity) => [plot.X(intensity), plot.Y(tera(intensity))];
  const parts = [];
  const x0 = x.min;

  const [ridgeX, ridgeY] = at(found.ridge);
  parts.push(line(ridgeX, ridgeY, ridgeX, plot.bottom, { color: "muted", width: 1, dash: "3 4" }));
  parts.push(text(ridgeX + 5, plot.bottom - 8, `ridge ${num(found.ridge)}`, { color: "muted" }));
  if (shown && found.maxBatch > 0) {
    const [first, last] = [1, Math.max(1, found.maxBatch)].map(
      (batch) => roofline(MODELS[state.model], gpu, { ...state, batch }).decode,
    );
    const trail = [at(first), ...(first < found.ridge && last > found.ridge ? [at(found.ridge)] : []), at(last)];
    parts.push(`<g opacity="0.38">${path(trail, { color: "sky", width: 11 })}</g>`);
    for (const [batch, [x, y]] of [
      [1, trail[0]],
      [found.maxBatch, trail.at(-1)],
    ])
      parts.push(text(x - 9, y - 5, int(batch), { anchor: "end", size: 11, color: "muted" }));
  }
  parts.push(path([at(x.min), at(found.ridge), at(x.max)], { color: "ink", width: 2 }));
  if (shown) {
    const [limitX, limitY] = at(Math.min(found.ceiling, x.max));
    if (found.ceiling < x.max) {
      parts.push(line(limitX, limitY - 26, limitX, plot.bottom, { color: "blue", width: 1.5, dash: "6 4" }));
      parts.push(
        text(limitX - 5, limitY - 32, `decode ends at ${num(found.ceiling)}`, {
          color: "blue-t",
          anchor: limitX > plot.left + 130 ? "end" : "start",
        }),
      );
    }
  }
  const slope = (Math.atan2(plot.Y(tera(1)) - plot.Y(tera(10)), plot.X(10) - plot.X(1)) * 180) / Math.PI;
  const [sx, sy] = at(narrow ? 1.4 : 1.2);
  parts.push(
    `<g transform="translate(${px(sx)} ${px(sy - 12)}) rotate(${px(-slope)})">${text(0, 0, `${num(gpu.bandwidth / 1e12)} TB/s`, { color: "muted" })}</g>`,
  );
  parts.push(
    text(plot.right, plot.Y(gpu.peak / 1e12) - 9, `${fixed(gpu.peak / 1e12, gpu.peak % 1e12 ? 1 : 0)} TFLOP/s`, {
      anchor: "end",
      color: "muted",
    }),
  );

  const label = (intensity, color, name, note, hollow = false) => {
    const [x, y] = at(Math.max(x0, intensity));
    const end = x > width - 16 - 7.2 * Math.max(name.length, note.length);
    const place = { anchor: end ? "end" : "start", color: `${color}-t` };
    parts.push(dot(x, y, { color, r: 7, hollow }));
    parts.push(text(end ? plot.right : x + 12, y + (end ? 25 : 20), name, { ...place, weight: 650 }));
    parts.push(text(end ? plot.right : x + 12, y + (end ? 40 : 35), note, place));
  };
  label(
    found.prefill,
    "orange",
    narrow ? "prefill" : `prefill, ${int(state.prompt)} tokens`,
    `${num(found.prefill)} FLOP/B`,
  );
  const full = found.limit === "capacity";
  label(
    found.decode,
    "blue",
    `decode, batch ${int(state.batch)}`,
    `${num(found.decode)} FLOP/B${full ? ", does not fit" : ""}`,
    full,
  );
  return svg(
    width,
    height,
    `Roofline of ${gpu.name}: decode at ${num(found.decode)}, prefill at ${num(found.prefill)}, ridge at ${num(found.ridge)} FLOP per byte`,
    plot.svg + parts.join(""),
  );
}

function view(state, env) {
  const model = MODELS[state.model];
  const { gpu } = env;
  const found = roofline(model, gpu, state);
  const binds = {
    bandwidth: "bandwidth binds",
    arithmetic: "arithmetic binds",
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
    `Prefill of ${int(state.prompt)} tokens: ${num(found.prefill)} FLOP per byte, ${found.prefillLimit} binds.`;
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
  const key = `<p class="key"><span><i style="background:${c("sky")};opacity:.45"></i>decode from batch 1 to ${int(found.maxBatch)}, where memory is full</span></p>`;
  return { figure: picture(found, state, env) + (env.shown ? key : ""), say, table };
}

export default explorer({
  name: "roofline",
  title: "Roofline explorer",
  defaults: { model: "llama-3-8b", gpu: "", weight_bits: 16, batch: 8, context: 2048, prompt: 2000 },
  controls,
  question,
  view,
});
