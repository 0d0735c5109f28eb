// Quantization: drag one weight out of the crowd and watch its group lose its levels; groups and bits as the remedies.
import { WEIGHTS } from "../generated/constants.js";
import { explorer } from "../shared/explorer.js";
import { fixed, int, num, percent, plural, tick } from "../shared/format.js";
import { axes, c, dot, line, px, rect, scale, svg, text } from "../shared/plot.js";
import { frame, measure } from "./logic.js";

const GROUPS = [4, 8, 16, 32, 64, 128];

const weightsOf = (state) => (state.weights.length ? state.weights : WEIGHTS);
const frameOf = (state) => frame(weightsOf(state), state.weights.length > 0);

const controls = (state) => [
  {
    kind: "number",
    key: "outlier",
    label: "The outlier",
    min: -frameOf(state).limit,
    max: frameOf(state).limit,
    step: frameOf(state).limit / 100,
    real: true,
  },
  { kind: "number", key: "bits", label: "Bits", min: 2, max: 8 },
  {
    kind: "choice",
    key: "group",
    label: "Weights that share a scale",
    options: [...GROUPS.filter((size) => size < weightsOf(state).length), weightsOf(state).length].map((size) => [
      size,
      size === weightsOf(state).length ? `all ${size}` : String(size),
    ]),
  },
];

const found = (state) => measure(weightsOf(state), state, frameOf(state).at);

function question(state) {
  const { groupZeros, groupSize, groupScale } = found(state);
  return {
    key: "quantization-zeros",
    kind: "number",
    text: `${plural(groupSize, "weight")}, none but one beyond ±${tick(frameOf(state).spread)}, share one ${state.bits}-bit scale. That one is ${tick(state.outlier)}. How many of them come back as exactly 0?`,
    unit: "weights",
    answer: groupZeros,
    show: int(groupZeros),
    tolerance: 0.15,
    explain: `The outlier sets the step: ${num(groupScale)}. Whatever is smaller than half a step, ${num(groupScale / 2)}, is rounded to 0.`,
  };
}

/** All weights as stems, their restored values as bars of the grid; the outlier can be dragged. */
function stems(state, now, { width, shown, still }) {
  const height = 230;
  const n = now.weights.length;
  const { at, spread } = frameOf(state);
  const top = Math.max(spread, Math.max(...now.weights.map(Math.abs)) * 1.15);
  const plot = axes({
    width,
    height,
    left: 34,
    bottom: 24,
    grid: false,
    x: { min: -0.7, max: n - 0.3, ticks: [] },
    y: { min: -top, max: top, label: "weight", count: 5 },
  });
  const parts = [];
  for (let start = 0; start < n; start += state.group) {
    const [from, to] = [plot.X(start - 0.45), plot.X(Math.min(n, start + state.group) - 0.55)];
    const own = start === now.first;
    parts.push(rect(from, plot.top, to - from, plot.bottom - plot.top, { fill: own ? "soft" : "bg" }));
    if (start)
      parts.push(line(plot.X(start - 0.5), plot.top, plot.X(start - 0.5), plot.bottom, { color: "line", width: 1 }));
    const step = now.scales[Math.floor(start / state.group)];
    if (shown && step > 0 && Math.abs(plot.Y(step) - plot.Y(0)) >= 3) {
      const most = 2 ** (state.bits - 1) - 1;
      let d = "";
      for (let level = -most; level <= most; level++) d += `M${px(from)} ${px(plot.Y(level * step))}H${px(to)}`;
      parts.push(`<path d="${d}" stroke="${c("sky")}" stroke-width="1" opacity="0.8"/>`);
    }
  }
  parts.push(line(plot.left, plot.Y(0), plot.right, plot.Y(0), { color: "muted", width: 1 }));
  const thick = Math.max(1.5, Math.min(4, ((width - 50) / n) * 0.45));
  now.weights.forEach((weight, i) => {
    if (i === at) return;
    const zero = shown && now.q[i] === 0;
    parts.push(line(plot.X(i), plot.Y(0), plot.X(i), plot.Y(weight), { color: zero ? "muted" : "blue", width: thick }));
    if (shown)
      parts.push(
        line(plot.X(i) - 3, plot.Y(now.restored[i]), plot.X(i) + 3, plot.Y(now.restored[i]), {
          color: "ink",
          width: 2,
        }),
      );
  });
  const [x, y] = [plot.X(at), plot.Y(state.outlier)];
  parts.push(line(x, plot.Y(0), x, y, { color: "orange", width: 3 }));
  parts.push(dot(x, y, { color: "orange", r: 8 }));
  parts.push(
    text(x + 13, y + 4, `outlier ${tick(state.outlier)}${still ? "" : ", drag me"}`, {
      color: "orange-t",
      weight: 650,
    }),
  );
  if (!still)
    parts.push(
      `<circle data-drag="outlier" cx="${px(x)}" cy="${px(y)}" r="24" fill="transparent" style="cursor:ns-resize;touch-action:none"/>`,
    );
  parts.push(
    text(plot.right, height - 5, `${n} weights, ${plural(Math.ceil(n / state.group), "group")}`, {
      anchor: "end",
      color: "muted",
      halo: false,
    }),
  );
  return {
    picture: svg(width, height, `${n} weights in groups of ${state.group}`, plot.svg + parts.join("")),
    top,
    plot,
  };
}

/** The outlier's group up close: from each weight a line to the level it is rounded to. */
function slopes(state, now, { width }) {
  const height = 136;
  const [top, bottom] = [36, 104];
  const { spread } = frameOf(state);
  const X = scale({ min: -spread * 1.05, max: spread * 1.05 }, 8, width - 8);
  const step = now.groupScale;
  const parts = [
    text(4, 13, `the ${int(now.groupSize)} weights of its group, up to ±${tick(spread)}`, {
      color: "muted",
      halo: false,
    }),
  ];
  const inside = (value) => Math.abs(value) <= spread * 1.025;
  if (step > 0) {
    const most = 2 ** (state.bits - 1) - 1;
    let d = "";
    for (let level = -most; level <= most; level++)
      if (inside(level * step)) d += `M${px(X(level * step))} ${bottom - 8}v16`;
    parts.push(`<path d="${d}" stroke="${c("ink")}" stroke-width="1.6"/>`);
  }
  parts.push(line(8, bottom, width - 8, bottom, { color: "muted", width: 1 }));
  for (let i = now.first; i < now.first + now.groupSize; i++) {
    const [weight, back] = [now.weights[i], now.restored[i]];
    if (!inside(weight)) continue;
    const zero = now.q[i] === 0;
    parts.push(line(X(weight), top, X(back), bottom, { color: zero ? "muted" : "blue", width: 1.2 }));
    parts.push(dot(X(weight), top, { r: 4, color: zero ? "muted" : "blue" }));
  }
  for (const part of [-1, -0.5, 0, 0.5, 1])
    parts.push(
      text(X(part * spread), bottom + 24, tick(part * spread), {
        anchor: part === -1 ? "start" : part === 1 ? "end" : "middle",
        color: "muted",
        halo: false,
      }),
    );
  return svg(width, height, `${now.groupZeros} of ${now.groupSize} weights are rounded to 0`, parts.join(""));
}

function view(state, env) {
  const now = found(state);
  const above = stems(state, now, env);
  const key = `<p class="key"><span><i style="background:${c("blue")}"></i>kept</span><span><i style="background:${c("muted")}"></i>rounded to 0</span><span><i style="background:${c("ink")};height:2px"></i>value that comes back</span><span><i style="background:${c("sky")};height:2px"></i>level of the grid</span></p>`;
  const figure = above.picture + (env.shown ? key + slopes(state, now, env) : "");
  const say = !env.shown
    ? `${now.weights.length} weights, one of them ${tick(state.outlier)}.`
    : `${state.bits} bits, a 16-bit scale for ${now.groupSize === now.weights.length ? "all" : `each ${state.group}`}: ${fixed(now.bitsPerWeight, 3)} bits per weight. ` +
      `The outlier's group has steps of ${num(now.groupScale)}: it uses ${now.levelsUsed} of ${now.levels} levels, and ${now.groupZeros} of its ${plural(now.groupSize, "weight")} become 0. ` +
      `Error of all weights but the outlier: ${percent(now.errorOthers, 1)}.`;
  const sizes = [...new Set([...GROUPS.filter((size) => size < now.weights.length), now.weights.length])];
  const table = {
    caption: `${state.bits} bits, outlier ${tick(state.outlier)}; errors are root mean square, relative to the weights`,
    head: ["Group", "Bits per weight", "Error, all", "Error, the others", "Become 0", "Levels used in its group"],
    rows: sizes.map((group) => {
      const row = measure(weightsOf(state), { ...state, group }, frameOf(state).at);
      return [
        int(group),
        fixed(row.bitsPerWeight, 3),
        percent(row.error, 2),
        percent(row.errorOthers, 1),
        int(row.zeros),
        `${row.levelsUsed} of ${row.levels}`,
      ];
    }),
    now: sizes.indexOf(state.group),
  };
  return { figure, say, table };
}

export default explorer({
  name: "quantization",
  title: "Quantization explorer",
  usesGpu: false,
  defaults: { outlier: 8, bits: 4, group: 64, weights: [] },
  controls,
  question,
  view,
  drag(api, _what, { y }) {
    if (!api.env.shown) return;
    const { state, env } = api;
    const value = stems(state, found(state), env).plot.Y.invert(y);
    const { limit } = frameOf(state);
    const step = limit / 100;
    const near = Math.round(Math.max(-limit, Math.min(limit, value)) / step) * step;
    api.set({ outlier: Number(near.toPrecision(6)) });
  },
});
