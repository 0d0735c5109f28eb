// One decode step as a person would draw it: the memory with the weights and one KV piece for each user, and under it,
// to the same scale, the time that reading all of it takes. The end of the pieces can be dragged.
import { deploy } from "../shared/arithmetic.js";
import { bytes, int, num, tick } from "../shared/format.js";
import { MODELS } from "../shared/models.js";
import { c, grip, hatch, Labels, line, px, rect, scale, svg, text } from "../shared/plot.js";
import { MAX } from "./logic.js";

const [TOP, TALL, STEP, THIN] = [40, 38, 112, 22]; // the memory's top and height, the step's
const PAD = 20; // pixels on both sides, so that the handle stays inside

/** Bytes to pixels: the memory and a quarter more, the same for every batch. A step's time is drawn as bytes read. */
function toScale({ weights, memory }, width) {
  return scale({ min: 0, max: Math.max(memory * 1.25, weights * 1.2) }, PAD, width - PAD);
}

/** The KV pieces from byte `from` on: one for each user, several together where they are too thin to be told apart. */
function pieces(from, n, each, X, right) {
  const together = Math.max(1, Math.ceil(4 / (X(each) - X(0))));
  const parts = [];
  for (let first = 0; first < n; first += together) {
    const [left, end] = [X(from + first * each), Math.min(right, X(from + Math.min(n, first + together) * each))];
    if (left >= right) break;
    parts.push(rect(left, TOP + 4, Math.max(0.6, end - left - 1), TALL - 8, { fill: "memory", opacity: 0.62 }));
  }
  return parts.join("");
}

/** The memory, filled; what is beyond its end is hatched. */
function block(here, state, X, width, id, labels) {
  const used = here.used(state.batch, state.context);
  const right = width - PAD;
  const end = Math.min(X(here.memory), right);
  const parts = [`<defs>${hatch(`${id}-over`, "orange")}</defs>`];
  parts.push(rect(X(0), TOP, end - X(0), TALL, { fill: "soft", stroke: "muted" }));
  parts.push(rect(X(0), TOP + 4, Math.min(right, X(here.weights)) - X(0) - 1, TALL - 8, { fill: "memory" }));
  parts.push(pieces(here.weights, state.batch, state.context * here.kv, X, right));
  if (used > here.memory)
    parts.push(rect(end, TOP + 4, Math.min(right, X(used)) - end, TALL - 8, { fill: `url(#${id}-over)` }));
  parts.push(line(end, TOP - 8, end, TOP + TALL + 8, { color: "orange", width: 3 }));
  const full = `memory full at ${int(here.maxSequences(state.context))}`;
  parts.push(labels.put([full], [[end, 14, "end"]], { color: "orange-t", weight: 650 }));
  const middle = (X(0) + Math.min(right, X(here.weights))) / 2;
  const weights = [`weights ${bytes(here.weights)}`, bytes(here.weights), "weights"];
  const room = X(here.weights) - X(0);
  const inside = weights.find((words) => words.length * 7 < room - 8);
  if (inside) parts.push(text(middle, TOP + 24, inside, { anchor: "middle", color: "bg", weight: 650, halo: false }));
  else parts.push(labels.put(weights[0], [[X(0), 32, "start"]], { color: "memory-t", weight: 650 }));
  return parts.join("");
}

/** The step under the memory: as long as its bytes take, or as its arithmetic takes where that is longer. */
function time(here, gpu, state, X, width, labels) {
  const step = here.step(state.batch, state.context);
  const at = (seconds) => Math.min(width - PAD, X(seconds * gpu.bandwidth));
  const computing = here.operators(here.weights, 2 * MODELS[state.model].params * state.batch);
  const color = computing.computeSeconds > computing.memorySeconds ? "work" : "memory";
  const [first, second] = [at(step.linearSeconds), at(step.seconds)];
  const box = (name, from, to, fill, opacity) =>
    `<rect data-m="${name}" x="${px(from)}" y="${STEP}" width="${px(Math.max(1, to - from - 1))}" height="${THIN}" fill="${c(fill)}" opacity="${opacity}"/>`;
  const parts = [box("linear", X(0), first, color, 1), box("attention", first, second, "memory", 0.62)];
  const words = `one step: ${num(step.seconds * 1e3, 3)} ms`;
  const beside = [
    [second + 6, STEP + 16, "start"],
    [X(0) + 6, STEP + 16, "start"],
    [X(0), STEP + THIN + 20, "start"],
  ];
  labels.keepOff(X(0), STEP, Math.max(0, second - X(0)), THIN);
  const limit = at(state.slo / 1e3);
  if (limit < width - PAD) {
    labels.keepOff(limit - 2, STEP - 6, 4, THIN + 10);
    parts.push(line(limit, STEP - 6, limit, STEP + THIN + 6, { color: "green", width: 2, dash: "6 4" }));
  }
  parts.push(labels.put(words, beside, { weight: 650 }));
  if (limit < width - PAD) {
    const [foot, head] = [STEP + THIN + 20, STEP - 10];
    const places = [
      [limit, foot, "middle"],
      [limit + 4, foot, "end"],
      [limit - 4, foot, "start"],
      [limit, head, "middle"],
      [limit - 4, head, "start"],
    ];
    parts.push(labels.put(`limit ${tick(state.slo)} ms`, places, { color: "green-t", weight: 650 }));
  }
  return parts.join("");
}

export function strip(state, { gpu, width, still, id }) {
  const here = deploy(MODELS[state.model], gpu, { bits: state.weight_bits });
  const X = toScale(here, width);
  const labels = new Labels(width, 158);
  const end = Math.min(width - PAD, X(here.used(state.batch, state.context)));
  const parts = [block(here, state, X, width, id, labels), time(here, gpu, state, X, width, labels)];
  const users = `${int(state.batch)} ${state.batch === 1 ? "user" : "users"}`;
  labels.keepOff(end - 24, TOP, 48, TALL);
  const places = [
    [end, 32, "middle"],
    [end, TOP + TALL + 18, "middle"],
    [end + 10, TOP + TALL + 18, "end"],
    [end - 10, TOP + TALL + 18, "start"],
  ];
  parts.push(labels.put(users, places, { color: "memory-t", weight: 650 }));
  const handle = { label: "Users at once", now: state.batch, min: 1, max: MAX, words: users };
  if (!still) parts.push(grip(end, TOP + TALL / 2, { what: "batch", upright: TALL / 2 + 4, ...handle }));
  const { seconds, rate } = here.step(state.batch, state.context);
  const words = `One decode step: weights ${bytes(here.weights)}, ${users} with ${bytes(state.context * here.kv)} of KV cache each, ${num(seconds * 1e3, 3)} ms`;
  const swatch = (color, name, opacity = 1) =>
    `<span><i style="background:${c(color)};opacity:${opacity}"></i>${name}</span>`;
  const key = `<p class="key">${swatch("memory", "weights, read once")}${swatch("memory", "a KV cache for each user", 0.62)}${swatch("work", "arithmetic, where it takes longer than reading")}</p>`;
  const rates = `<p class="rates"><span><b>${num(rate, 4)}</b> tokens/s together</span><span><b>${num(1 / seconds, 3)}</b> for each user</span></p>`;
  const told = still
    ? ""
    : '<p class="note">Drag the end of the pieces to add users. The step under them is to the same scale.</p>';
  return svg(width, 158, words, parts.join("")) + rates + key + told;
}

/** The batch whose pieces end at `x` pixels. */
export function batchUpTo(x, state, { gpu, width }) {
  const here = deploy(MODELS[state.model], gpu, { bits: state.weight_bits });
  const room = toScale(here, width).invert(x) - here.weights;
  return Math.min(MAX, Math.max(1, Math.round(room / (state.context * here.kv))));
}
