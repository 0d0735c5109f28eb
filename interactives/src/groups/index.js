// Group size against error, measured on a real matrix: a row cut into its groups, then the curve beside what a bell curve predicts, and where the
// weights fall on the grid. The points come from Python; nothing is measured here.
import { explorer } from "../shared/explorer.js";
import { fixed, int, percent } from "../shared/format.js";
import { axes, c, dot, path, rect, svg, text } from "../shared/plot.js";
import { levelsUsed, nearestSize, toZero } from "./logic.js";
import { sizeAt, strip } from "./strip.js";

const controls = ({ points }) =>
  points.length
    ? [
        {
          kind: "number",
          key: "group",
          label: "Weights that share a scale",
          min: points[0].size,
          max: points.at(-1).size,
          stops: points.map(({ size }) => size),
          only: true,
        },
      ]
    : [];

function errors(points, chosen, width) {
  const height = 250;
  const most = Math.max(...points.flatMap(({ error, expected }) => [error, expected])) * 100;
  const sizes = points.map(({ size }) => size);
  const plot = axes({
    width,
    height,
    left: 34,
    x: {
      min: sizes[0] / 1.25,
      max: sizes.at(-1) * 1.25,
      log: true,
      ticks: sizes,
      label: "group size (weights per scale)",
    },
    y: { min: 0, max: most * 1.15, label: "relative error (%)" },
  });
  const at = (key) => points.map((point) => [plot.X(point.size), plot.Y(100 * point[key])]);
  const parts = [
    path(at("expected"), { color: "orange", dash: "6 4" }),
    path(at("error"), { color: "blue", width: 2.5 }),
  ];
  for (const [x, y] of at("error")) parts.push(dot(x, y, { r: 4 }));
  const [x, y] = [plot.X(chosen.size), plot.Y(100 * chosen.error)];
  parts.push(dot(x, y, { r: 8, color: "blue" }));
  parts.push(
    text(x, y - 14, percent(chosen.error, 1), {
      anchor: x > width - 60 ? "end" : "middle",
      color: "blue-t",
      weight: 650,
    }),
  );
  const last = points.at(-1);
  parts.push(text(plot.right, plot.Y(100 * last.expected) + 18, "bell curve", { anchor: "end", color: "orange-t" }));
  return svg(
    width,
    height,
    `Error against group size: ${percent(chosen.error, 1)} at ${chosen.size}`,
    plot.svg + parts.join(""),
  );
}

function levels(points, chosen, width) {
  const height = 250;
  const largest = (chosen.shares.length - 1) / 2;
  const most = Math.max(...points.flatMap(({ shares }) => shares)) * 100; // the same scale for every group size
  const plot = axes({
    width,
    height,
    left: 34,
    x: {
      min: -largest - 0.7,
      max: largest + 0.7,
      ticks: [-largest, -Math.round(largest / 2), 0, Math.round(largest / 2), largest],
      label: `level (${chosen.bits}-bit integer)`,
    },
    y: { min: 0, max: most * 1.1, label: "weights on it (%)" },
  });
  const wide = (plot.X(1) - plot.X(0)) * 0.78;
  const bars = chosen.shares.map((share, i) => {
    const x = plot.X(i - largest) - wide / 2;
    return rect(x, plot.Y(100 * share), wide, plot.bottom - plot.Y(100 * share), {
      fill: i === largest ? "muted" : "blue",
    });
  });
  const zero = text(plot.X(0), plot.Y(100 * toZero(chosen)) - 6, `0: ${percent(toZero(chosen))}`, {
    anchor: "middle",
    color: "muted",
  });
  return svg(width, height, `${percent(toZero(chosen))} of the weights become 0`, plot.svg + bars.join("") + zero);
}

function view({ points, group }, env) {
  if (!points.length) return { figure: "", say: "Nothing was measured.", table: { caption: "", head: [], rows: [] } };
  const now = nearestSize(points, group);
  const chosen = points[now];
  const width = env.width >= 600 ? Math.floor((env.width - 20) / 2) : env.width;
  const figure = `${strip(points, chosen, env)}<div class="panels"><div class="panel">${errors(points, chosen, width)}</div><div class="panel">${levels(points, chosen, width)}</div></div><p class="key"><span><i style="background:${c("blue")};height:3px"></i>measured</span><span><i style="background:repeating-linear-gradient(90deg,${c("orange")} 0 4px,transparent 4px 7px);height:2px"></i>predicted for a bell curve</span><span><i style="background:${c("muted")}"></i>become 0</span></p>`;
  const say =
    `Groups of ${int(chosen.size)}: ${fixed(chosen.cost, 2)} bits per weight, error ${percent(chosen.error, 1)} (bell curve: ${percent(chosen.expected, 1)}). ` +
    `${percent(toZero(chosen))} of the weights become 0, and 90 % of them use ${levelsUsed(chosen)} of the ${chosen.shares.length} levels.`;
  const table = {
    caption: `${chosen.bits} bits, a 16-bit scale for each group`,
    head: ["Group size", "Bits per weight", "Error", "Bell curve", "Become 0", "Levels for 90 %"],
    rows: points.map((point) => [
      int(point.size),
      fixed(point.cost, 3),
      percent(point.error, 1),
      percent(point.expected, 1),
      percent(toZero(point)),
      `${levelsUsed(point)} of ${point.shares.length}`,
    ]),
    now,
  };
  return { figure, say, table };
}

export default explorer({
  name: "groups",
  title: "Group size and error",
  usesGpu: false,
  defaults: { points: [], group: 32 },
  controls,
  view,
  drag(api, _what, { x }) {
    api.set({ group: sizeAt(x, api.state.points, api.env) });
  },
  nudge(api, _what, by) {
    const { points, group } = api.state;
    const next = Math.min(points.length - 1, Math.max(0, nearestSize(points, group) + by));
    api.set({ group: points[next].size });
  },
});
