// Draft length: one round to scale, whose end can be dragged, and the speed-up of every length. A longer draft costs more
// and its last tokens are rarely kept; in a large batch the check itself costs more than a plain step.
import { explorer } from "../shared/explorer.js";
import { fixed, int, num, tick } from "../shared/format.js";
import { batchSlider, contextSlider, MODELS, modelChoice } from "../shared/models.js";
import { axes, c, dot, grip, Labels, line, path, px, scale, svg, text } from "../shared/plot.js";
import { draftLengths, MAX_K } from "./logic.js";

const controls = (state) => [
  { kind: "number", key: "alpha", label: "Acceptance α", min: 0, max: 1, step: 0.01 },
  { kind: "number", key: "cost", label: "Cost of a draft pass", unit: "passes", min: 0, max: 1, step: 0.01 },
  batchSlider(1024),
  contextSlider(state),
  modelChoice,
];

function question(state, { gpu }) {
  const { rows, best } = draftLengths(MODELS[state.model], gpu, state);
  return {
    key: "draft-length",
    kind: "number",
    text: `Each drafted token is accepted with probability ${tick(state.alpha)}, and a draft pass costs ${tick(state.cost)} of a target pass. At batch ${int(state.batch)}, how many tokens k should the draft write before each check?`,
    unit: "tokens",
    answer: best,
    show: int(best),
    tolerance: 0,
    explain: `There ${best ? `a round gives ${num(rows[best].tokens)} tokens for the time of ${num(rows[best].tokens / rows[best].speedup)} passes: ${fixed(rows[best].speedup, 2)} times as fast` : "drafting only costs time"}.`,
  };
}

/** The length that is looked at: what was dragged, else the best. */
const lengthOf = ({ best }, local) => local.k ?? best;

/** Where things of the round stand: time in passes of the target, from `left` on. */
function roundFrame({ rows }, k, { width }) {
  const row = rows[k];
  const [left, tall, top] = [52, 24, 64];
  const longest = Math.max(...rows.map((one) => Math.max(one.tokens, one.tokens / one.speedup)));
  return { row, left, tall, top, X: scale({ min: 0, max: longest * 1.03 }, left, width - 8) };
}

/** Boxes one after another: [[width in passes, color, name]]. */
function boxes(list, X, y, tall, name) {
  let at = 0;
  return list.map(([passes, color, opacity = 1], i) => {
    const [from, to] = [X(at), X(at + passes)];
    at += passes;
    const wide = Math.max(2, to - from - 1.5);
    return `<rect data-m="${name}-${i}" x="${px(from)}" y="${px(y)}" width="${px(wide)}" height="${tall}" rx="2" fill="${c(color)}" opacity="${opacity}"/>`;
  });
}

/** One round above the plain decoding of as many tokens; over each token how likely it is to be won. */
function round(found, state, env) {
  const k = lengthOf(found, env.local);
  const { row, left, tall, top, X } = roundFrame(found, k, env);
  const height = top + 2 * tall + 44;
  const drafted = k * state.cost;
  const labels = new Labels(env.width, height);
  const side = (y, words) => text(left - 6, y + 16, words, { anchor: "end", color: "muted", halo: false });
  const checkColor = row.verify > 1.005 ? "work" : "memory";
  const parts = [side(top, "round"), side(top + tall + 8, "plain")];
  parts.push(
    ...boxes([...Array.from({ length: k }, () => [state.cost, "draft"]), [row.verify, checkColor]], X, top, tall, "r"),
  );
  const whole = Math.floor(row.tokens + 1e-9);
  const plain = [...Array.from({ length: whole }, () => [1, "memory", 0.62]), [row.tokens - whole, "memory", 0.62]];
  parts.push(...boxes(plain, X, top + tall + 8, tall, "p"));
  for (let i = 0; i <= k; i++) {
    // Token i of the draft is won with probability α^i; the check always adds one of its own.
    const [middle, likely] = i < k ? [(i + 0.5) * state.cost, state.alpha ** (i + 1)] : [drafted + row.verify / 2, 1];
    const tallest = 40;
    const wide = i < k ? Math.max(2, Math.min(12, X(state.cost) - X(0) - 2)) : 12;
    parts.push(
      `<rect data-m="t-${i}" x="${px(X(middle) - wide / 2)}" y="${px(top - 6 - tallest * likely)}" width="${px(wide)}" height="${px(tallest * likely)}" fill="${c("green")}"/>`,
    );
  }
  const under = top + 2 * tall + 26;
  const end = X(drafted + row.verify);
  parts.push(line(end, top - 4, end, top + 2 * tall + 10, { color: "ink", width: 1.5, dash: "3 3" }));
  const faster = `${num(row.tokens)} tokens in ${num(drafted + row.verify)} instead of ${num(row.tokens)} passes: ${fixed(row.speedup, 2)}×`;
  const short = `${num(row.tokens)} tokens a round: ${fixed(row.speedup, 2)}×`;
  for (const words of [faster, short]) {
    const label = labels.put(words, [[left, under, "start"]], { weight: 650, halo: false });
    parts.push(label);
    if (label) break;
  }
  if (X(row.verify) - X(0) > 66) {
    parts.push(text(X(drafted) + 22, top + 16, "check", { color: "bg", weight: 650, halo: false }));
  }
  parts.push(handle(X(drafted), top, tall, k, env));
  const words = `One round with k = ${k}: ${num(drafted)} passes of drafting, ${num(row.verify)} of checking, ${num(row.tokens)} tokens on average`;
  return svg(env.width, height, words, parts.join(""));
}

function handle(x, top, tall, k, { still }) {
  if (still) return "";
  const range = { now: k, min: 0, max: MAX_K, words: `${k} drafted tokens` };
  return grip(x, top + tall / 2, { what: "k", label: "End of the drafts", upright: tall / 2 + 3, ...range });
}

/** The speed-up of every length; the best one and the one of the round are marked. */
function picture({ rows, best }, k, state, { width, shown }) {
  const height = 260;
  const top = Math.max(1.6, ...rows.map((row) => Math.max(row.speedup, state.batch > 1 ? row.free : 0))) * 1.16;
  const plot = axes({
    width,
    height,
    left: 40,
    x: { min: 0, max: MAX_K, ticks: [0, 2, 4, 6, 8, 10, 12, 14, 16], label: "k, drafted tokens a round" },
    y: { min: 0, max: shown ? top : 4, label: "speed against plain decoding (×)" },
  });
  const labels = Labels.within(plot, width);
  const parts = [line(plot.left, plot.Y(1), plot.right, plot.Y(1), { color: "muted", width: 1.5, dash: "3 4" })];
  const plain = [
    [plot.right, plot.Y(1) + 15, "end"],
    [plot.right, plot.Y(1) - 6, "end"],
  ];
  if (!shown) {
    parts.push(labels.put("plain decoding", plain, { color: "muted" }), dot(plot.X(0), plot.Y(1), { r: 6 }));
    return svg(width, height, "Speed-up against draft length, not shown yet", plot.svg + parts.join(""));
  }
  const at = (row, key) => [plot.X(row.k), plot.Y(row[key])];
  if (rows.some((row) => row.free - row.speedup > 0.03)) {
    const free = rows.map((row) => at(row, "free"));
    parts.push(path(free, { color: "green", width: 2, dash: "6 4" }));
    const [x, y] = free[11];
    parts.push(
      labels.put(
        "if the check were free",
        [
          [x, y - 9, "middle"],
          [x, y + 18, "middle"],
        ],
        { color: "green-t" },
      ),
    );
  }
  parts.push(
    path(
      rows.map((row) => at(row, "speedup")),
      { color: "draft", width: 2.5 },
    ),
  );
  for (const row of rows) {
    const [x, y] = at(row, "speedup");
    labels.keepOff(x - 3, y - 3, 6, 6);
    parts.push(dot(x, y, { r: row.k === best ? 8 : 4, color: "draft", hollow: row.k === k && k !== best }));
  }
  const [x, y] = at(rows[best], "speedup");
  const places = [
    [x, y - 15, "middle"],
    [x + 12, y - 15, "start"],
    [x - 12, y - 15, "end"],
    [x + 14, y + 22, "start"],
  ];
  parts.push(
    labels.put(`best k = ${best}: ${fixed(rows[best].speedup, 2)}×`, places, { color: "draft-t", weight: 650 }),
  );
  parts.push(labels.put("plain decoding", plain, { color: "muted" }));
  return svg(width, height, `Speed-up against draft length: best at k = ${best}`, plot.svg + parts.join(""));
}

function view(state, env) {
  const found = draftLengths(MODELS[state.model], env.gpu, state);
  const { rows, best } = found;
  const row = rows[best];
  const say = !env.shown
    ? "At k = 0 the speed is that of plain decoding. The rest comes when you commit."
    : `α ${tick(state.alpha)}, a draft pass costs ${tick(state.cost)}, batch ${int(state.batch)}: ` +
      (best === 0
        ? "no draft pays for itself, k = 0 is best."
        : `k = ${best} is best: ${num(row.tokens)} tokens a round, ${fixed(row.speedup, 2)} times as fast as plain decoding.`) +
      (row.verify > 1.005 || rows[4].verify > 1.005
        ? ` The linear layers are compute-bound: checking 5 tokens costs ${fixed(rows[4].verify, 2)} plain steps here.`
        : " All layers are memory-bound: checking 5 tokens costs as much as writing one.");
  const table = {
    caption: `${MODELS[state.model].name} on ${env.gpu.name}, α = ${tick(state.alpha)}, draft cost ${tick(state.cost)}, batch ${int(state.batch)}`,
    head: ["k", "Tokens a round", "Cost of the check", "Speed-up"],
    rows: rows.map((one) => [int(one.k), fixed(one.tokens, 3), fixed(one.verify, 2), `${fixed(one.speedup, 2)}×`]),
    now: best,
  };
  const curve = picture(found, lengthOf(found, env.local), state, env);
  return { figure: (env.shown ? roundPanel(found, state, env) : "") + curve, say, table };
}

function roundPanel(found, state, env) {
  const k = lengthOf(found, env.local);
  const checking = found.rows[k].verify > 1.005 ? "work" : "memory";
  const swatch = (color, words) => `<span><i style="background:${c(color)}"></i>${words}</span>`;
  const key = `<p class="key">${swatch("draft", "a draft pass")}${swatch(checking, "the target's check")}${swatch("green", "a token, as tall as it is likely")}</p>`;
  const step = (by, sign, words) =>
    `<button data-act="length" data-by="${by}" data-key="length${by}" aria-label="${words}"${k + by < 0 || k + by > MAX_K ? " disabled" : ""}>${sign}</button>`;
  const buttons = env.still
    ? ""
    : `<div class="row"><span>k = ${k}${k === found.best ? ", the best" : ""}</span>${step(-1, "−", "One drafted token less")}${step(1, "+", "One drafted token more")}<span class="note">or drag the end of the drafts</span></div>`;
  return `<p class="sub">One round, to scale</p>${key}${round(found, state, env)}${buttons}`;
}

/** k from 0 to MAX_K as the view's own choice; the best length is followed again after a change of the settings. */
const choose = (api, k) => api.local({ k: Math.min(MAX_K, Math.max(0, k)) });
const foundFor = ({ state, env }) => draftLengths(MODELS[state.model], env.gpu, state);

export default explorer({
  name: "draft",
  title: "Best draft length",
  defaults: { model: "llama-3-8b", gpu: "", alpha: 0.8, cost: 0.1, batch: 1, context: 2048 },
  controls,
  question,
  view,
  fresh: { k: undefined },
  actions: {
    length: (api, { by }) => choose(api, lengthOf(foundFor(api), api.env.local) + Number(by)),
  },
  drag(api, _what, { x }) {
    const { X } = roundFrame(foundFor(api), 0, api.env);
    choose(api, Math.round(X.invert(x) / Math.max(0.01, api.state.cost)));
  },
  nudge(api, _what, by) {
    choose(api, lengthOf(foundFor(api), api.env.local) + by);
  },
});
