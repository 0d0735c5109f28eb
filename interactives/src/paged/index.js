// Paged KV cache beside a contiguous one: the same sequences, what each way sets aside, and copy on write step by step.

import { parseNumber } from "../shared/answers.js";
import { kvBytesPerToken } from "../shared/arithmetic.js";
import { explorer } from "../shared/explorer.js";
import { bytes, esc, int, num, percent, plural } from "../shared/format.js";
import { MODELS, modelChoice } from "../shared/models.js";
import { c, hatch, px, rect, svg, text } from "../shared/plot.js";
import { account, MOST, replay } from "./logic.js";

const COLORS = ["blue", "orange", "green", "purple", "yellow", "sky"];
const colorOf = (i) => COLORS[i % COLORS.length];

const lengthsControl = {
  kind: "text",
  key: "lengths",
  label: "Sequences, tokens each",
  format: (value) => value.join(", "),
  parse(words) {
    const list = words
      .split(/[\s,;]+/)
      .filter(Boolean)
      .map((word) => parseNumber(word).value);
    if (!list.length || list.length > 8) throw new Error("One to eight lengths, please: 37, 120, 64");
    const bad = list.some((length) => !Number.isInteger(length) || length < 1 || length > 512);
    if (bad) throw new Error("Each length is a whole number from 1 to 512.");
    return list;
  },
};

const SLOTS = [16, 32, 64, 128, 192, 256, 384, 512, 768, 1024];

/** The shortest slot: what lies in it always fits. A broken address may hold lengths that are none. */
const shortestSlot = ({ lengths }) => Math.max(16, ...lengths.filter(Number.isInteger));

const controls = (state) => [
  lengthsControl,
  {
    kind: "number",
    key: "block_size",
    label: "Block",
    unit: "tokens",
    min: 1,
    max: 64,
    stops: [1, 2, 4, 8, 16, 24, 32, 48, 64],
  },
  {
    kind: "number",
    key: "reserved",
    label: "Contiguous slot",
    unit: "tokens",
    min: shortestSlot(state),
    max: 1024,
    stops: [...new Set([shortestSlot(state), ...SLOTS.filter((slot) => slot >= shortestSlot(state))])],
  },
  { kind: "number", key: "prefix", label: "Shared beginning", unit: "tokens", min: 0, max: 256 },
  modelChoice,
];

const kv = (state) => kvBytesPerToken(MODELS[state.model]);

function question(state) {
  const found = account({ ...state, events: [] }, kv(state));
  return {
    key: "paged-waste",
    kind: "number",
    text: `Sequences of ${state.lengths.join(", ")} tokens. A contiguous cache keeps ${int(found.slot)} places for each, because an answer may grow that long. What share of it holds nothing?`,
    unit: "%",
    answer: (100 * found.contiguousWaste) / found.contiguous,
    show: num((100 * found.contiguousWaste) / found.contiguous, 2),
    tolerance: 0.1,
    explain: `${int(found.contiguousWaste)} of ${int(found.contiguous)} places: ${bytes(found.wasteBytes[0])} of ${MODELS[state.model].name}'s cache. Blocks of ${state.block_size} tokens waste ${int(found.pagedWaste)} places, ${bytes(found.wasteBytes[1])}.`,
  };
}

function contiguous(found, { width, shown, id }) {
  const [left, rowHeight] = [22, 24];
  const height = found.lengths.length * rowHeight + 8;
  const X = (tokens) => left + (tokens / found.slot) * (width - left - 4);
  const parts = [`<defs>${hatch(`${id}-waste`)}</defs>`];
  found.lengths.forEach((tokens, i) => {
    const y = 4 + i * rowHeight;
    parts.push(text(left - 8, y + 14, "ABCDEFGHIJKL"[i], { anchor: "end", weight: 650, halo: false }));
    parts.push(rect(left, y, X(found.slot) - left, rowHeight - 6, { fill: "soft", stroke: "muted", radius: 2 }));
    if (!shown) return;
    parts.push(rect(X(tokens), y, X(found.slot) - X(tokens), rowHeight - 6, { fill: `url(#${id}-waste)` }));
    parts.push(rect(left, y, X(tokens) - left, rowHeight - 6, { fill: colorOf(i), radius: 2 }));
    parts.push(text(Math.min(X(tokens) + 5, width - 34), y + 13, int(tokens), { size: 11 }));
  });
  return svg(width, height, `Contiguous: ${found.lengths.length} slots of ${found.slot} tokens`, parts.join(""));
}

function pool(state, found, cache, touched, { width, shown }) {
  const fill = cache.filled();
  const owners = fill.map(() => []);
  [...cache.tables.values()].forEach(({ blocks }, i) => blocks.forEach((block) => owners[block].push(i)));
  const last = Math.max(0, ...cache.references.map((count, block) => (count ? block : 0)));
  const show = Math.min(fill.length, last + 5);
  const cell = show > 90 ? 24 : show > 40 ? 30 : 38;
  const tall = cell > 26 ? 30 : 22;
  const columns = Math.max(4, Math.floor((width - 2) / (cell + 4)));
  const height = Math.ceil(show / columns) * (tall + 18) + 4;
  const parts = [];
  for (let block = 0; block < show; block++) {
    const x = 2 + (block % columns) * (cell + 4);
    const y = 2 + Math.floor(block / columns) * (tall + 18);
    const used = cache.references[block] > 0;
    parts.push(rect(x, y, cell, tall, { fill: used ? "soft" : "none", stroke: used ? "muted" : "line", radius: 2 }));
    if (used && shown) {
      const wide = (cell * fill[block]) / cache.size;
      const strip = tall / owners[block].length;
      owners[block].forEach((owner, i) => parts.push(rect(x, y + i * strip, wide, strip, { fill: colorOf(owner) })));
      if (touched.includes(block))
        parts.push(
          `<rect class="fade" data-fade="${block}-${state.events.length}" x="${px(x - 1)}" y="${px(y - 1)}" width="${cell + 2}" height="${tall + 2}" fill="none" stroke="${c("ink")}" stroke-width="2.5" rx="3"/>`,
        );
    }
    const users = cache.references[block];
    const who = owners[block].map((i) => "ABCDEFGHIJKL"[i]).join("");
    parts.push(
      text(
        x + cell / 2,
        y + tall + 12,
        used ? (users > 1 ? (cell > 26 && users < 5 ? who : `×${users}`) : `${block}`) : "",
        {
          anchor: "middle",
          size: 10.5,
          color: users > 1 ? "ink" : "muted",
          weight: users > 1 ? 650 : 400,
          halo: false,
        },
      ),
    );
  }
  return svg(width, height, `Paged: ${found.blocks} blocks of ${state.block_size} tokens in use`, parts.join(""));
}

function view(state, env) {
  const { shown, still } = env;
  const { cache, told, touched } = replay(state);
  const found = account(state, kv(state));
  const two = env.width >= 620;
  const width = two ? Math.floor((env.width - 20) / 2) : env.width;
  const share = (waste, all) => (shown ? ` · wasted: ${bytes(waste * kv(state))}, ${percent(waste / all)}` : "");
  const names = [...cache.tables.keys()];
  const tables = names
    .map((name, i) => {
      const { blocks, tokens } = cache.tables.get(name);
      const buttons =
        still || !shown
          ? ""
          : `<button data-act="write" data-name="${name}" data-key="write-${name}" aria-label="Write a token to ${name}">Write</button><button data-act="fork" data-name="${name}" data-key="fork-${name}" aria-label="Fork ${name}"${names.length >= MOST ? " disabled" : ""}>Fork</button>`;
      const numbers =
        blocks.length > 12 ? `${blocks.slice(0, 5).join(" ")} … ${blocks.slice(-3).join(" ")}` : blocks.join(" ");
      return `<div class="row" style="margin-top:.35rem;justify-content:space-between"><span><i style="display:inline-block;width:.8em;height:.8em;border-radius:2px;background:${c(colorOf(i))};margin-right:.45em"></i><strong>${name}</strong> · ${plural(tokens, "token")} · <span class="note">blocks ${numbers}</span></span><span style="display:flex;gap:.4rem">${buttons}</span></div>`;
    })
    .join("");
  const undo =
    state.events.length && !still ? '<button data-act="undo" data-key="undo">Take the last step back</button>' : "";
  const steps = told.length
    ? `<p class="sub">What just happened</p><ol class="steps fade" data-fade="steps-${state.events.length}">${told.map((one) => `<li>${esc(one)}</li>`).join("")}</ol>${undo}`
    : "";
  const figure =
    `<div class="panels"><div class="panel"><p class="sub">Contiguous<span class="note">${share(found.contiguousWaste, found.contiguous)}</span></p>${contiguous(found, { ...env, width })}</div>` +
    `<div class="panel"><p class="sub">Paged<span class="note">${share(found.pagedWaste, found.paged)}</span></p>${shown ? pool(state, found, cache, touched, { ...env, width }) : '<p class="note">The blocks come when you commit.</p>'}</div></div>` +
    (shown
      ? `<p class="key"><span><i style="background:repeating-linear-gradient(45deg,${c("muted")} 0 1.5px,transparent 1.5px 4px)"></i>set aside, holds nothing</span><span>under a block: its number, or who shares it (×6: six do)</span></p><p class="sub">Block tables</p>${tables}${steps}`
      : "");
  const say = !shown
    ? `${plural(state.lengths.length, "sequence")}; each has a slot of ${int(found.slot)} tokens in the contiguous cache.`
    : `Contiguous: ${bytes(found.bytes[0])} set aside, ${percent(found.contiguousWaste / found.contiguous)} of it empty. Paged: ${plural(found.blocks, "block")}, ${bytes(found.bytes[1])}, ${percent(found.pagedWaste / found.paged)} empty` +
      (found.shared ? `; sharing saves ${plural(found.shared, "token")}, ${bytes(found.shared * kv(state))}.` : ".") +
      (told.length ? ` ${told.join(" ")}` : "");
  const table = {
    caption: `${MODELS[state.model].name}: ${int(kv(state))} bytes of KV cache a token`,
    head: ["Cache", "Places set aside", "Tokens held", "Empty", "Empty (MB)", "All (MB)"],
    rows: [
      [
        "Contiguous",
        int(found.contiguous),
        int(found.stored),
        percent(found.contiguousWaste / found.contiguous),
        num(found.wasteBytes[0] / 1e6),
        num(found.bytes[0] / 1e6),
      ],
      [
        "Paged",
        int(found.paged),
        int(found.filled),
        percent(found.pagedWaste / found.paged),
        num(found.wasteBytes[1] / 1e6),
        num(found.bytes[1] / 1e6),
      ],
    ],
  };
  return { figure, say, table };
}

const step =
  (act) =>
  (api, { name }) =>
    api.set({ events: [...api.state.events, `${act} ${name}`] });

export default explorer({
  name: "paged",
  title: "Paged KV cache",
  tall: true,
  usesGpu: false,
  defaults: { model: "llama-3-8b", lengths: [37, 120, 64, 9], block_size: 16, reserved: 256, prefix: 0, events: [] },
  controls,
  question,
  view,
  changed: (key) => (["lengths", "block_size", "prefix"].includes(key) ? { events: [] } : {}),
  actions: {
    fork: step("fork"),
    write: step("write"),
    undo: (api) => api.set({ events: api.state.events.slice(0, -1) }),
  },
});
