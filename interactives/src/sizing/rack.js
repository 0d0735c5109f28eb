// The cards of the bill, one under the other as in a rack: weights, scales and KV caches fill one after the next, the
// reserve at the end of each stays free, and what finds no room opens cards that are not there.
import { bytes, int, plural } from "../shared/format.js";
import { c, grip, hatch, Labels, line, px, rect, scale, svg, text, ticks } from "../shared/plot.js";

const [LEFT, RIGHT, TOP] = [56, 22, 24];
const MORE = 4; // missing cards that are drawn; the rest is counted

export const PARTS = [
  ["weights", "memory", "payload", 1],
  ["scales", "green", "scales", 1],
  ["KV caches", "memory", "kv", 0.62],
];

/** Where the cards lie: {usable, n (drawn), tall, X(bytes on a card), Y(card)}. */
function places(found, state, { gpu, width, shown }) {
  const n = shown ? Math.max(state.n_gpus, Math.min(found.needed, state.n_gpus + MORE)) : state.n_gpus;
  const tall = n <= 4 ? 34 : n <= 8 ? 24 : 15;
  const pitch = tall + (n <= 8 ? 7 : 4);
  const X = scale({ min: 0, max: gpu.memory }, LEFT, width - RIGHT);
  const usable = gpu.memory * (1 - state.reserve / 100);
  return { usable, n, tall, pitch, X, Y: (card) => TOP + card * pitch };
}

function card(i, state, { usable, tall, X, Y }, { gpu, id }) {
  const missing = i >= state.n_gpus;
  const [left, wide, y] = [X(0), X(gpu.memory) - X(0), Y(i)];
  const frame = missing
    ? `<rect x="${px(left)}" y="${px(y)}" width="${px(wide)}" height="${tall}" fill="none" stroke="${c("orange")}" stroke-width="1.5" stroke-dasharray="5 4"/>`
    : rect(left, y, wide, tall, { fill: "soft", stroke: "muted" });
  const free = state.reserve ? rect(X(usable), y, X(gpu.memory) - X(usable), tall, { fill: `url(#${id}-free)` }) : "";
  const name = missing ? "missing" : `GPU ${i + 1}`;
  const place = { anchor: "end", color: missing ? "orange-t" : "muted", size: 11, halo: false };
  return frame + free + text(left - 6, y + tall / 2 + 4, name, place);
}

/** One part of the bill, from byte `from` to byte `to`, cut at the ends of the cards. */
function segments(from, to, [, color, key, opacity], state, { usable, n, tall, X, Y }) {
  const parts = [];
  for (let i = Math.floor(from / usable + 1e-12); i < n && i * usable < to - 1; i++) {
    const [left, right] = [Math.max(0, from - i * usable), Math.min(usable, to - i * usable)];
    const paler = i >= state.n_gpus ? 0.6 : 1;
    parts.push(
      `<rect data-m="${key}-${i}" x="${px(X(left))}" y="${px(Y(i) + 3)}" width="${px(Math.max(1, X(right) - X(left)))}" height="${tall - 6}" fill="${c(color)}" opacity="${px(opacity * paler)}"/>`,
    );
  }
  return parts.join("");
}

function handle(found, state, where, { shown, still }) {
  if (still || !shown) return "";
  const { usable, n, tall, X, Y } = where;
  const last = Math.min(n - 1, Math.max(0, Math.ceil(found.need / usable - 1e-9) - 1));
  const x = X(Math.min(usable, found.need - last * usable));
  const words = plural(state.sequences, "sequence");
  const options = { label: "End of the KV caches", now: state.sequences, min: 1, max: 1024, words };
  return grip(x, Y(last) + tall / 2, { what: "sequences", upright: tall / 2 + 2, ...options });
}

export function rack(found, state, env) {
  const { gpu, width, shown, id, still } = env;
  const where = places(found, state, env);
  const foot = where.Y(where.n) + 2;
  const more = found.needed - where.n;
  const height = foot + 24 + (shown && more > 0 ? 20 : 0);
  const parts = [`<defs>${hatch(`${id}-free`)}</defs>`];
  for (let i = 0; i < where.n; i++) parts.push(card(i, state, where, env));
  let at = 0;
  for (const part of shown ? PARTS : []) {
    parts.push(segments(at, at + found[part[2]], part, state, where));
    at += found[part[2]];
  }
  const labels = new Labels(width, height);
  const { X } = where;
  parts.push(line(X(0), foot, X(gpu.memory), foot, { color: "muted", width: 1 }));
  for (const value of ticks({ min: 0, max: gpu.memory / 1e9 }, Math.max(3, Math.round(width / 130)))) {
    const x = X(value * 1e9);
    parts.push(line(x, foot, x, foot + 4, { color: "muted", width: 1 }));
    parts.push(labels.put(value ? int(value) : "0 GB", [[x, foot + 18, "middle"]], { color: "muted", halo: false }));
  }
  if (shown && more > 0)
    parts.push(
      text(X(0), height - 4, `and ${plural(more, "more card", "more cards")}`, { color: "orange-t", weight: 650 }),
    );
  parts.push(handle(found, state, where, env));
  const swatch = (color, opacity, words) =>
    `<span><i style="background:${c(color)};opacity:${opacity}"></i>${words}</span>`;
  const paid = PARTS.filter(([, , key]) => found[key] > 0);
  const named = paid.map(([name, color, key, opacity]) => swatch(color, opacity, `${name} ${bytes(found[key])}`));
  const free = `<span><i style="background:repeating-linear-gradient(135deg,${c("muted")} 0 1.6px,transparent 1.6px 5px)"></i>kept free</span>`;
  const key = shown ? `<p class="key">${named.join("")}${state.reserve ? free : ""}</p>` : "";
  const told = shown && !still ? '<p class="note">Drag the end of the KV caches to add sequences.</p>' : "";
  const words = `${bytes(found.need)} on ${plural(state.n_gpus, "GPU")} of ${bytes(gpu.memory)}`;
  return svg(width, height, words, parts.join("")) + key + told;
}

/** The sequences whose KV caches end at the point {x, y} of the rack. */
export function sequencesUpTo({ x, y }, found, state, env) {
  const { usable, n, pitch, X } = places(found, state, env);
  const onto = Math.min(n - 1, Math.max(0, Math.floor((y - TOP) / pitch)));
  const end = onto * usable + Math.min(usable, Math.max(0, X.invert(x)));
  const each = found.kv / state.sequences;
  return Math.min(1024, Math.max(1, Math.round((end - found.payload - found.scales) / each)));
}
