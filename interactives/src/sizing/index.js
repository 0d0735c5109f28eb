// Sizing calculator: a bill of bytes, the GPUs that pay it as cards in a rack, and the fastest step they allow.
import { stopBeside, stops } from "../shared/controls.js";
import { explorer } from "../shared/explorer.js";
import { bytes, fixed, int, num, plural } from "../shared/format.js";
import { contextSlider, MODELS, modelChoice } from "../shared/models.js";
import { bill } from "./logic.js";
import { rack, sequencesUpTo } from "./rack.js";

const SEQUENCES = stops(1, 1024, 6);

const controls = (state) => [
  { kind: "number", key: "n_gpus", label: "GPUs", min: 1, max: 16 },
  { kind: "number", key: "sequences", label: "Sequences at once", min: 1, max: 1024, stops: SEQUENCES },
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
  return { figure: verdict + rack(found, state, env), say, table };
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
  drag(api, _what, place) {
    const { state, env } = api;
    api.set({ sequences: sequencesUpTo(place, bill(MODELS[state.model], env.gpu, state), state, env) });
  },
  nudge(api, _what, by) {
    api.set({ sequences: stopBeside(SEQUENCES, api.state.sequences, by) });
  },
});
