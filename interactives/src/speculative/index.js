// One speculative round, step by step: before each reveal the learner says what will happen. Then many rounds: the first
// token's histogram closes in on p, whatever the draft was.
import { explorer } from "../shared/explorer.js";
import { esc, fixed, int, percent, plural } from "../shared/format.js";
import { c, line, rect, svg, text } from "../shared/plot.js";
import { recordPrediction } from "../shared/store.js";
import { acceptance, argmax, closer, firstTokens, numbers, residual, round } from "./logic.js";

const PROMPT = "The sky at noon is";
const WORDS = [
  ["blue", "grey", "clear"],
  ["today", "above", "again"],
  [".", ",", "and"],
  ["It", "The", "We"],
  ["was", "is", "had"],
];
const P = [
  [0.5, 0.3, 0.2],
  [0.6, 0.3, 0.1],
  [0.7, 0.2, 0.1],
  [0.4, 0.35, 0.25],
  [0.2, 0.7, 0.1],
];
const Q = [
  [0.2, 0.3, 0.5],
  [0.7, 0.1, 0.2],
  [0.5, 0.4, 0.1],
  [0.3, 0.5, 0.2],
  [0.4, 0.5, 0.1],
];
const places = (state) => P.map((p, i) => ({ p, q: closer(p, Q[i], state.closeness / 100) }));

const controls = () => [
  {
    kind: "choice",
    key: "rule",
    label: "Rule",
    options: [
      ["exact", "exact: u < p / q"],
      ["greedy", "greedy: the same favourite"],
    ],
  },
  { kind: "number", key: "k", label: "Drafted tokens k", min: 1, max: 4 },
  { kind: "number", key: "closeness", label: "Draft moved towards p", unit: "%", min: 0, max: 100 },
  { kind: "number", key: "seed", label: "Round number", min: 1, max: 999 },
];

function question(state) {
  const { p, q } = places(state)[0];
  const show = (values) => values.map((value, i) => `${WORDS[0][i]} ${fixed(value, 2)}`).join(", ");
  const answer = 100 * acceptance(p, q);
  return {
    key: "speculative-acceptance",
    kind: "number",
    text: `“${PROMPT} …”: the target says ${show(p)}; the draft says ${show(q)}. The draft draws a word, and the exact rule keeps it with probability min(1, p/q). How often is it kept, over many rounds?`,
    unit: "%",
    answer,
    show: fixed(answer, 0),
    tolerance: 0.03,
    explain: `The overlap of the two, Σ min(p, q) = ${P[0].map((value, i) => fixed(Math.min(value, q[i]), 2)).join(" + ")}.`,
  };
}

/** Two bars for each word: target and draft. `marked` is the drafted word, `rest` the residual to draw. */
function bars({ p, q }, words, { width, marked = -1, rest = null }) {
  const [row, left] = [rest ? 48 : 36, 62];
  const height = words.length * row + 6;
  const full = width - left - 50;
  const parts = [];
  words.forEach((word, i) => {
    const y = 4 + i * row;
    if (i === marked) parts.push(rect(0, y - 3, width, row - 2, { fill: "soft", radius: 4 }));
    parts.push(text(left - 8, y + 18, word, { anchor: "end", weight: i === marked ? 700 : 400, halo: false }));
    parts.push(
      rect(left, y + 1, full * p[i], 12, { fill: "blue" }),
      text(left + full * p[i] + 5, y + 11, fixed(p[i], 2), { color: "blue-t", size: 11, halo: false }),
    );
    parts.push(
      rect(left, y + 15, full * q[i], 12, { fill: "orange" }),
      text(left + full * q[i] + 5, y + 25, fixed(q[i], 2), { color: "orange-t", size: 11, halo: false }),
    );
    if (rest)
      parts.push(
        rect(left, y + 29, full * rest[i], 12, { fill: "green" }),
        text(left + full * rest[i] + 5, y + 39, fixed(rest[i], 2), { color: "green-t", size: 11, halo: false }),
      );
  });
  return svg(
    width,
    height,
    `Probabilities: ${words.map((word, i) => `${word} target ${fixed(p[i], 2)}, draft ${fixed(q[i], 2)}`).join("; ")}`,
    parts.join(""),
  );
}

/** The shares that came out, beside p. */
function histogram(counts, { p, q }, words, { width }, rule) {
  const n = counts.reduce((sum, count) => sum + count, 0);
  const height = 150;
  const [left, bottom, top] = [34, 118, 24];
  const slot = (width - left - 10) / words.length;
  const Y = (share) => bottom - share * (bottom - top);
  const parts = [text(4, 13, "share of the rounds", { color: "muted", halo: false })];
  for (const share of [0, 0.5, 1])
    parts.push(
      line(left, Y(share), width - 8, Y(share), { color: "line", width: 1 }),
      text(left - 6, Y(share) + 4, percent(share), { anchor: "end", color: "muted", halo: false, size: 11 }),
    );
  words.forEach((word, i) => {
    const wide = Math.min(70, slot * 0.6);
    const x = left + slot * (i + 0.5) - wide / 2;
    const target = rule === "greedy" ? Number(i === argmax(p)) : p[i];
    if (n) parts.push(rect(x, Y(counts[i] / n), wide, bottom - Y(counts[i] / n), { fill: "sky" }));
    parts.push(line(x - 9, Y(target), x + wide + 9, Y(target), { color: "blue", width: 3 }));
    parts.push(line(x - 9, Y(q[i]), x + wide + 9, Y(q[i]), { color: "orange", width: 2, dash: "4 3" }));
    parts.push(
      text(x + wide / 2, bottom + 16, `${word}${n ? ` ${percent(counts[i] / n, 1)}` : ""}`, {
        anchor: "middle",
        halo: false,
      }),
    );
  });
  return svg(width, height, `First token of ${n} rounds`, parts.join(""));
}

const run = (state) => round(places(state), state, numbers(state.seed));

const word = (place, token) => WORDS[place][token];

/** The prompt, the drafted words with what became of them, and the word that the target wrote itself. */
function sentence({ drafted, steps }, open) {
  const fates = {
    kept: ["✓ ", `border-color:${c("green")};color:${c("green-t")}`],
    refused: ["✗ ", `border-color:${c("orange")};color:${c("orange-t")};text-decoration:line-through`],
    dropped: ["", "opacity:.55;text-decoration:line-through"],
    unknown: ["", ""],
  };
  const fateOf = (i) => {
    if (i < open && steps[i]) return steps[i].accepted ? "kept" : "refused";
    return i >= steps.length && open === steps.length ? "dropped" : "unknown";
  };
  const chips = drafted.map((token, i) => {
    const [mark, style] = fates[fateOf(i)];
    return `<span style="border:1.5px solid ${c("muted")};border-radius:6px;padding:.05rem .5rem;${style}">${mark}${esc(word(i, token))}</span>`;
  });
  const last = open ? steps[open - 1] : null;
  if (last && (last.bonus || !last.accepted)) {
    const style = `border:1.5px solid ${c("blue")};border-radius:6px;padding:.05rem .5rem;color:${c("blue-t")};font-weight:650`;
    chips.push(`<span style="${style}">${esc(word(last.place, last.chosen))}</span>`);
  }
  return `<div class="row"><span>${PROMPT}</span>${chips.join("")}</div>`;
}

const swatch = (color, words, more = "") => `<span><i style="background:${c(color)}${more}"></i>${words}</span>`;

/** The two distributions at the place that is judged, after a refusal with the residual. */
function distributions(state, showing, judged, all, width) {
  const { p, q } = all[showing.place];
  const rest = judged && !showing.accepted && state.rule === "exact" ? residual(p, q) : null;
  const more = rest ? swatch("green", "what p has more than q, made to sum to 1") : "";
  const marked = showing.bonus ? -1 : showing.token;
  const legend = `<p class="key">${swatch("blue", "p, target")}${swatch("orange", "q, draft")}${more}</p>`;
  return legend + bars(all[showing.place], WORDS[showing.place], { width: Math.min(width, 520), marked, rest });
}

/** The next step in words, and the buttons with which the learner predicts it. */
function prediction(state, next, { p, q }) {
  const say = (what, name) => `<button data-act="step" data-say="${what}" data-key="${what}">${name}</button>`;
  if (next.bonus) {
    const told =
      "All drafted words were kept. The target's own distribution is there for one place more: a bonus word, for free.";
    return `<p>${told}</p><div class="row"><button class="main" data-act="step" data-key="step">Take it</button></div>`;
  }
  const drawn = word(next.place, next.token);
  const told =
    state.rule === "greedy"
      ? `The draft's favourite is “${drawn}”. It is kept if it is the target's favourite too.`
      : `The draft drew “${drawn}”: p/q = ${fixed(p[next.token], 2)} / ${fixed(q[next.token], 2)}. A number u is drawn evenly from 0 to 1; the word is kept if u < p/q.`;
  const buttons = `<span>Your prediction:</span>${say("kept", "Kept")}${say("refused", "Refused")}`;
  return `<p>${esc(told)}</p><div class="row">${buttons}</div>`;
}

function manyRounds(state, counts, n, { p, q }, { width, still }) {
  const target = state.rule === "greedy" ? "the target's favourite" : "p, target";
  const dashes = `repeating-linear-gradient(90deg,${c("orange")} 0 4px,transparent 4px 7px);height:2px`;
  const key = `<p class="key">${swatch("sky", "came out")}${swatch("blue", target, ";height:3px")}<span><i style="background:${dashes}"></i>q, draft</span></p>`;
  const run = [1, 100, 1000, 10000].map(
    (rounds) => `<button data-act="many" data-n="${rounds}" data-key="many-${rounds}">+${int(rounds)}</button>`,
  );
  const buttons = still ? "" : `<div class="row"><span>Run</span>${run.join("")}</div>`;
  const title = `<p class="sub">The first word of many rounds <span class="note">· ${plural(n, "round")}</span></p>`;
  return title + key + histogram(counts, { p, q }, WORDS[0], { width: Math.min(width, 520) }, state.rule) + buttons;
}

/** The share of the first word that is furthest from what it tends to. */
function furthest(state, counts, n, p) {
  const target = p.map((value, i) => (state.rule === "greedy" ? Number(i === argmax(p)) : value));
  return Math.max(...counts.map((count, i) => Math.abs(count / n - target[i])));
}

function sayRound(state, { drafted, steps }, all, { shown, last, finished, counts, n }) {
  const words = drafted.map((token, i) => `“${word(i, token)}”`).join(" ");
  if (!shown) return `The draft wrote ${plural(state.k, "word")}: ${words}.`;
  const parts = [last ? outcomeOf(state, last, all) : `The draft wrote: ${words}.`];
  if (finished) parts.push(`${plural(steps.length, "token")} for one pass of the target.`);
  if (n) {
    const target = state.rule === "greedy" ? "the target's favourite" : "p";
    const off = percent(furthest(state, counts, n, all[0].p), 1);
    parts.push(`After ${plural(n, "round")} the shares of the first word are within ${off} of ${target}.`);
  }
  return parts.join(" ");
}

function view(state, env) {
  const all = places(state);
  const made = run(state);
  const { steps } = made;
  const { shown, still } = env;
  const open = still ? steps.length : Math.min(env.local.open ?? 0, steps.length); // revealed steps
  const counts = env.local.counts ?? [0, 0, 0];
  const n = counts.reduce((sum, count) => sum + count, 0);
  const last = open ? steps[open - 1] : null;
  const next = steps[open] ?? null;
  const finished = next === null && shown;
  const parts = [sentence(made, open)];
  if (shown) {
    const told = last ? `${env.local.said ?? ""}${esc(outcomeOf(state, last, all))}` : "";
    if (last) parts.push(`<p class="fade" data-fade="outcome-${open}" tabindex="-1" data-key="outcome">${told}</p>`);
    parts.push(distributions(state, next ?? last, next === null, all, env.width));
    if (next && !still) parts.push(prediction(state, next, all[next.place]));
    const again = '<div class="row"><button class="main" data-act="next" data-key="kept">Next round</button></div>';
    if (finished && !still) parts.push(again);
    parts.push(manyRounds(state, counts, n, all[0], env));
  }
  const { p, q } = all[0];
  const rest = residual(p, q);
  const table = {
    caption: `First place, ${state.rule} rule; the draft is accepted in ${percent(acceptance(p, q))} of all rounds (exact rule)`,
    head: ["Word", "p, target", "q, draft", "min(p, q)", "Residual", `Came out, ${int(n)} rounds`],
    rows: WORDS[0].map((name, i) => [
      name,
      ...[p[i], q[i], Math.min(p[i], q[i]), rest[i]].map((value) => fixed(value, 3)),
      n ? percent(counts[i] / n, 1) : "–",
    ]),
  };
  return { figure: parts.join(""), say: sayRound(state, made, all, { shown, last, finished, counts, n }), table };
}

function outcomeOf(state, step, all) {
  const word = (token) => `“${WORDS[step.place][token]}”`;
  if (step.bonus) return `Bonus: the target adds ${word(step.chosen)}.`;
  const { p, q } = all[step.place];
  if (state.rule === "greedy")
    return step.accepted
      ? `Kept: ${word(step.token)} is the target's favourite too.`
      : `Refused: the target's favourite is ${word(step.chosen)}, which takes its place and ends the round.`;
  const test = `u = ${fixed(step.u, 3)}, p/q = ${fixed(p[step.token] / q[step.token], 3)}`;
  return step.accepted
    ? `Kept: ${test}.`
    : `Refused: ${test}. ${word(step.chosen)} is drawn from what p has more than q, and the round ends.`;
}

export default explorer({
  name: "speculative",
  title: "One speculative round",
  tall: true,
  usesGpu: false,
  defaults: { rule: "exact", k: 3, closeness: 0, seed: 1 },
  controls,
  question,
  view,
  fresh: { open: 0, said: "", counts: undefined },
  actions: {
    step(api, { say }) {
      const { state, env } = api;
      const open = env.local.open ?? 0;
      const step = run(state).steps[open];
      let said = "";
      if (say) {
        const right = (say === "kept") === step.accepted;
        const certain = step.odds === 1 || step.odds === 0;
        said = right
          ? '<span class="right">✓ As you said.</span> '
          : `<span class="wrong">✗ You said ${say}.</span> ${certain ? "" : "A matter of chance. "}`;
        if (certain)
          // Only where the outcome follows from the numbers is a wrong prediction something to learn.
          recordPrediction({
            key: `speculative-${state.rule}-${step.odds}`,
            question:
              state.rule === "greedy"
                ? `Greedy rule: the draft's favourite is ${step.odds ? "" : "not "}the target's favourite. Is it kept? (1: kept, 0: refused)`
                : "Exact rule: the target gives the drafted token at least the draft's probability. With what probability is it kept?",
            answer: step.odds,
            unit: "",
            guess: say === "kept" ? 1 : 0,
            correct: right,
            tolerance: 0,
            explain:
              state.rule === "greedy"
                ? "Greedy keeps a drafted token exactly while it is what the target would have written."
                : "It is kept with probability min(1, p/q), and p/q is at least 1.",
          });
      }
      api.local({ open: open + 1, said });
    },
    next: (api) => {
      api.local({ open: 0, said: "" });
      api.set({ seed: (api.state.seed % 999) + 1 });
    },
    many(api, { n }) {
      const { state, env } = api;
      const { p, q } = places(state)[0];
      const before = env.local.counts ?? [0, 0, 0];
      const next = numbers(state.seed * 1000 + before.reduce((sum, count) => sum + count, 0) + 7);
      api.local({ counts: firstTokens(p, q, state.rule, Number(n), next, before) });
    },
  },
});
