// Best draft length: speed-up against k. Longer drafts are accepted less, cost more, and in a large batch the check
// itself is no longer free.
import { explorer } from "../shared/explorer.js";
import { fixed, int, num, tick } from "../shared/format.js";
import { batchSlider, contextSlider, MODELS, modelChoice } from "../shared/models.js";
import { axes, dot, line, path, svg, text } from "../shared/plot.js";
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

function picture({ rows, best }, state, { width, shown }) {
  const height = 300;
  const top = Math.max(1.6, ...rows.map((row) => Math.max(row.speedup, state.batch > 1 ? row.free : 0))) * 1.16;
  const plot = axes({
    width,
    height,
    left: 40,
    x: { min: 0, max: MAX_K, ticks: [0, 2, 4, 6, 8, 10, 12, 14, 16], label: "k, drafted tokens a round" },
    y: { min: 0, max: shown ? top : 4, label: "speed against plain decoding (×)" },
  });
  const parts = [line(plot.left, plot.Y(1), plot.right, plot.Y(1), { color: "muted", width: 1.5, dash: "3 4" })];
  parts.push(text(plot.right, plot.Y(1) + 15, "plain decoding", { anchor: "end", color: "muted" }));
  if (!shown)
    return svg(
      width,
      height,
      "Speed-up against draft length, not shown yet",
      plot.svg + parts.join("") + dot(plot.X(0), plot.Y(1), { r: 6 }),
    );
  const apart = rows.some((row) => row.free - row.speedup > 0.03);
  if (apart) {
    parts.push(
      path(
        rows.map((row) => [plot.X(row.k), plot.Y(row.free)]),
        { color: "green", width: 2, dash: "6 4" },
      ),
    );
    const last = rows[11];
    parts.push(
      text(plot.X(11), plot.Y(last.free) - 9, "if the check were free", { color: "green-t", anchor: "middle" }),
    );
  }
  parts.push(
    path(
      rows.map((row) => [plot.X(row.k), plot.Y(row.speedup)]),
      { color: "blue", width: 2.5 },
    ),
  );
  for (const row of rows)
    parts.push(
      dot(plot.X(row.k), plot.Y(row.speedup), { r: row.k === best ? 8 : 4, color: row.k === best ? "orange" : "blue" }),
    );
  const [x, y] = [plot.X(best), plot.Y(rows[best].speedup)];
  parts.push(line(x, y + 8, x, plot.bottom, { color: "orange", width: 1.5, dash: "3 4" }));
  parts.push(
    text(x, y - 15, `best k = ${best}: ${fixed(rows[best].speedup, 2)}×`, {
      anchor: best < 3 ? "start" : best > 13 ? "end" : "middle",
      color: "orange-t",
      weight: 650,
    }),
  );
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
  return { figure: picture(found, state, env), say, table };
}

export default explorer({
  name: "draft",
  title: "Best draft length",
  defaults: { model: "llama-3-8b", gpu: "", alpha: 0.8, cost: 0.1, batch: 1, context: 2048 },
  controls,
  question,
  view,
});
