// Batching timeline: one seeded workload under three scheduling rules, with the waits and the stalls of each request.
import { WORKLOADS } from "../generated/constants.js";
import { explorer } from "../shared/explorer.js";
import { int, num, seconds as show, tick } from "../shared/format.js";
import { MODELS, modelChoice } from "../shared/models.js";
import { c, dot, hatch, line, px, rect, scale, svg, text, ticks } from "../shared/plot.js";
import { compare } from "./logic.js";

const NAMES = {
  static: "Static batching",
  continuous: "Continuous, whole prompts",
  chunked: "Continuous, chunked prompts",
};
const SHORT = { static: "static", continuous: "continuous", chunked: "chunked" };
const RULE = {
  static: "a batch is filled, and the next one waits for its longest answer",
  continuous: "a free slot is refilled at once; a prompt is computed in one pass, and all answers wait for it",
  chunked: "decodes first, then prompts in pieces of what the token budget leaves",
};

const controls = () => [
  { kind: "number", key: "seed", label: "Workload", min: 0, max: WORKLOADS.length - 1 },
  { kind: "number", key: "slots", label: "Slots", unit: "requests", min: 1, max: 10 },
  {
    kind: "number",
    key: "budget",
    label: "Token budget, chunked",
    unit: "tokens",
    min: 16,
    max: 2048,
    step: 1,
    stops: [16, 32, 64, 96, 128, 192, 256, 384, 512, 768, 1024, 1536, 2048],
  },
  modelChoice,
];

const runs = (state, gpu) => compare(MODELS[state.model], gpu, WORKLOADS[state.seed], state);

function question(state, { gpu }) {
  const found = runs(state, gpu);
  const longest = Math.max(...found.map((run) => run.gap));
  const why = {
    static:
      "In a static batch all prompts are computed before the first answer begins, so nothing interrupts an answer.",
    continuous: "With whole prompts a newcomer's prompt stalls every answer in the batch.",
    chunked: "The token budget keeps each pass short: no prompt can stall the others for long.",
  };
  return {
    key: "timeline-stall",
    kind: "choice",
    text: `${WORKLOADS[state.seed].length} requests, some with long prompts, come within ${show(WORKLOADS[state.seed].at(-1).arrival / 1e3, 2)}; there are ${state.slots} slots. Under which rule does a running answer stall longest between two of its tokens?`,
    options: found.map((run) => ({
      text: NAMES[run.kind],
      correct: run.gap >= longest * 0.999, // ties are ties
      explain: why[run.kind],
    })),
    explain: `Longest gaps: ${found.map((run) => `${SHORT[run.kind]} ${show(run.gap)}`).join(", ")}.`,
  };
}

/** Rows of requests over time: waiting, prefill, decode, first token. */
function gantt(run, requests, { width, end, id, moves }) {
  const [left, rowHeight, top] = [30, 13, 6];
  const height = top + requests.length * rowHeight + 22;
  const X = scale({ min: 0, max: end * 1.01 }, left, width - 8);
  const parts = [`<defs>${hatch(`${id}-${run.kind}`)}</defs>`];
  for (const value of ticks({ min: 0, max: end * 1e3 }, Math.max(3, Math.round(width / 110)))) {
    const x = X(value / 1e3);
    parts.push(line(x, top, x, height - 18, { color: "line", width: 1 }));
    parts.push(
      text(x, height - 5, value === 0 ? "0 ms" : tick(value), { anchor: "middle", color: "muted", halo: false }),
    );
  }
  const y = (i) => top + i * rowHeight;
  requests.forEach((request, i) => {
    const started = run.passes.find((pass) => pass.chunks.some((chunk) => chunk.id === i)).start;
    parts.push(text(left - 5, y(i) + 10, String(i + 1), { anchor: "end", color: "muted", halo: false, size: 11 }));
    parts.push(
      line(X(request.arrival / 1e3), y(i) + 6, X(Math.max(started, request.arrival / 1e3)), y(i) + 6, {
        color: "muted",
        width: 1.5,
      }),
    );
  });
  requests.forEach((_, i) => {
    const [from, to] = [X(run.times[i].at(-1)), X(run.freed[i])];
    if (to - from > 1) parts.push(rect(from, y(i) + 1.5, to - from, 9, { fill: `url(#${id}-${run.kind})` }));
  });
  const bars = { orange: "", blue: "" };
  for (const pass of run.passes)
    for (const chunk of pass.chunks) {
      const [from, to] = [X(pass.start), X(pass.end)];
      const gap = Math.min(0.8, (to - from) * 0.25);
      bars[chunk.decode ? "blue" : "orange"] +=
        `M${px(from)} ${px(y(chunk.id) + 1.5)}h${px(to - from - gap)}v9h${px(-(to - from - gap))}z`;
    }
  for (const [color, d] of Object.entries(bars)) if (d) parts.push(`<path d="${d}" fill="${c(color)}"/>`);
  requests.forEach((_, i) => {
    const x = X(run.times[i][0]);
    parts.push(`<path d="M${px(x)} ${px(y(i) + 0.5)}v11" stroke="${c("ink")}" stroke-width="2.2"/>`);
  });
  const worst = run.each.findIndex((one) => one.gap === run.gap);
  const j = run.times[worst].findIndex((at, k, all) => k && at - all[k - 1] === run.gap);
  const [from, to] = [X(run.times[worst][j - 1]), X(run.times[worst][j])];
  if (to - from > 14) {
    parts.push(
      `<rect x="${px(from)}" y="${px(y(worst) + 0.5)}" width="${px(to - from)}" height="11" fill="none" stroke="${c("ink")}" stroke-width="1.6"/>`,
    );
    parts.push(text((from + to) / 2, y(worst) - 4, `no token for ${show(run.gap)}`, { anchor: "middle", weight: 650 }));
  }
  const cover = moves
    ? `<rect class="sweep" x="${left}" y="0" width="${px(width)}" height="${px(height - 18)}" fill="${c("bg")}"/>`
    : "";
  return svg(width, height, `${NAMES[run.kind]}: ends after ${show(run.end)}`, parts.join("") + cover, { clip: true });
}

/** One dot per request, a row per rule. */
function strips(found, { width, value, label }) {
  const [left, row, top] = [width < 480 ? 78 : 86, 26, 26];
  const height = top + found.length * row + 40;
  const all = found.flatMap((run) => run.each.map(value)).filter((one) => one > 0);
  const range = { min: Math.min(...all) * 1e3 * 0.8, max: Math.max(...all) * 1e3 * 1.25, log: true };
  const X = scale(range, left, width - 10);
  const parts = [text(4, 13, label, { color: "muted", halo: false })];
  const bottom = top + found.length * row;
  for (const mark of ticks(range, 5)) {
    parts.push(line(X(mark), top - 4, X(mark), bottom, { color: "line", width: 1 }));
    parts.push(text(X(mark), bottom + 14, tick(mark), { anchor: "middle", color: "muted", halo: false }));
  }
  parts.push(text(width - 10, bottom + 31, "ms (log scale)", { anchor: "end", color: "muted", halo: false }));
  found.forEach((run, i) => {
    const y = top + i * row + row / 2;
    parts.push(text(left - 8, y + 4, SHORT[run.kind], { anchor: "end", halo: false }));
    parts.push(line(left, y, width - 10, y, { color: "line", width: 1 }));
    const worst = Math.max(...run.each.map(value));
    [...run.each]
      .sort((a, b) => value(a) - value(b))
      .forEach(
        (one) =>
          value(one) > 0 &&
          parts.push(
            dot(X(value(one) * 1e3), y, {
              r: value(one) === worst ? 6.5 : 4.5,
              color: value(one) === worst ? "orange" : "blue",
            }),
          ),
      );
  });
  return svg(width, height, label, parts.join(""));
}

function view(state, env) {
  const { gpu, shown, local, width } = env;
  const requests = WORKLOADS[state.seed];
  const found = runs(state, gpu);
  const end = Math.max(...found.map((run) => run.end));
  const style = local.playing
    ? `<style>.sweep{transform-origin:right;animation:sweep ${Math.min(9, 4 + end * 4).toFixed(1)}s linear forwards}@keyframes sweep{to{transform:translateX(${px(width)}px)}}@media (prefers-reduced-motion: reduce),print{.sweep{display:none}}</style>`
    : "";
  const key = `<p class="key"><span><i style="background:${c("muted")};height:2px"></i>waits</span><span><i style="background:${c("orange")}"></i>prompt</span><span><i style="background:${c("blue")}"></i>a token for each bar</span><span><i style="background:${c("ink")};width:3px"></i>first token</span><span><i style="background:repeating-linear-gradient(45deg,${c("muted")} 0 1.5px,transparent 1.5px 4px)"></i>slot kept, empty</span></p>`;
  const list = requests.map((request, i) => `${i + 1}: ${int(request.prompt)} → ${request.answer}`).join("; ");
  const panels = found
    .map(
      (run) =>
        `<p class="sub">${NAMES[run.kind]}${shown ? ` <span class="note">· ends at ${show(run.end)}</span>` : ""}</p><p class="note">${RULE[run.kind]}</p>${shown ? gantt(run, requests, { width, end, id: env.id, moves: local.playing }) : ""}`,
    )
    .join("");
  const half = width >= 620 ? Math.floor((width - 20) / 2) : width;
  const below = shown
    ? `<div class="panels"><div class="panel">${strips(found, { width: half, value: (one) => one.ttft, label: "Time to first token, each request" })}</div><div class="panel">${strips(found, { width: half, value: (one) => one.gap, label: "Longest gap between two tokens" })}</div></div>`
    : "";
  const button =
    shown && !env.still
      ? '<div class="row"><button data-act="play" data-key="play">▶ Play from the start</button></div>'
      : "";
  const figure = `${style}<p class="note">Prompt → answer in tokens: ${list}.</p>${button}${shown ? key : ""}${panels}${below}`;
  const say = !shown
    ? `${requests.length} requests on ${state.slots} slots. The timelines come when you commit.`
    : found
        .map(
          (run) =>
            `${NAMES[run.kind]}: mean time to first token ${show(run.ttft)}, longest gap ${show(run.gap)}, all done after ${show(run.end)}.`,
        )
        .join(" ");
  const table = {
    caption: `Bounds for ${MODELS[state.model].name} on ${gpu.name}; ${state.slots} slots; TTFT and longest gap in ms`,
    head: [
      "Request",
      "Prompt",
      "Answer",
      ...found.flatMap((run) => [`TTFT ${SHORT[run.kind]}`, `gap ${SHORT[run.kind]}`]),
    ],
    rows: requests.map((request, i) => [
      String(i + 1),
      int(request.prompt),
      int(request.answer),
      ...found.flatMap((run) => [num(run.each[i].ttft * 1e3), num(run.each[i].gap * 1e3)]),
    ]),
  };
  return { figure, say, table };
}

export default explorer({
  name: "timeline",
  title: "Batching timeline",
  tall: true,
  defaults: { model: "llama-3-8b", gpu: "", seed: 0, slots: 4, budget: 256 },
  controls,
  question,
  view,
  actions: {
    play(api) {
      api.local({ playing: false });
      api.local({ playing: true });
    },
  },
});
