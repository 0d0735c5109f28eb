// The beginning of a row of the matrix, cut into its groups: the darker a group, the larger its error; and what a weight
// costs with its share of the scale. The border of the first group can be dragged.
import { fixed, int, percent } from "../shared/format.js";
import { c, grip, Labels, px, scale, svg } from "../shared/plot.js";
import { nearestSize } from "./logic.js";

const [PAD, TOP, TALL] = [20, 22, 34];
const COST = { top: 84, tall: 16 };
const SCALE_BITS = 16;

/** Weights to pixels: as many as the groups of the smallest size cover. */
const toScale = (points, width) => scale({ min: 0, max: points[0].strip.length * points[0].size }, PAD, width - PAD);

const shade = (error, most) => px(0.08 + 0.8 * (error / most));

function groups(chosen, most, X, length) {
  return chosen.strip.map((error, i) => {
    const [from, to] = [X(i * chosen.size), X(Math.min(length, (i + 1) * chosen.size))];
    const wide = Math.max(0.7, to - from - 1);
    return `<rect data-m="group-${i}" x="${px(from)}" y="${TOP}" width="${px(wide)}" height="${TALL}" fill="${c("ink")}" opacity="${shade(error, most)}"/>`;
  });
}

/** Bits of a weight and its share of the scale, to one scale for every group size. */
function cost(points, chosen, width, labels) {
  const bit = (width - 2 * PAD) / Math.max(...points.map((point) => point.cost));
  const box = (name, from, bits, opacity) =>
    `<rect data-m="${name}" x="${px(PAD + from * bit)}" y="${COST.top}" width="${px(Math.max(1, bits * bit - 1))}" height="${COST.tall}" fill="${c("memory")}" opacity="${opacity}"/>`;
  const share = `${fixed(chosen.cost, 2)} bits a weight: ${chosen.bits} + ${SCALE_BITS} / ${int(chosen.size)}`;
  const place = [PAD, COST.top + COST.tall + 16, "start"];
  const words = labels.put(share, [place], { color: "memory-t", weight: 650 });
  return box("payload", 0, chosen.bits, 1) + box("scale", chosen.bits, chosen.cost - chosen.bits, 0.62) + words;
}

export function strip(points, chosen, { width, still }) {
  if (!chosen.strip?.length) return "";
  const most = Math.max(...points.flatMap((point) => point.strip)) || 1;
  const length = points[0].strip.length * points[0].size;
  const X = toScale(points, width);
  const labels = new Labels(width, 120);
  const parts = groups(chosen, most, X, length);
  parts.push(labels.put(`the first ${int(length)} weights of a row`, [[PAD, 14, "start"]], { color: "muted" }));
  parts.push(cost(points, chosen, width, labels));
  const words = `${int(chosen.size)} weights share a scale`;
  const range = { now: chosen.size, min: points[0].size, max: points.at(-1).size, words };
  const border = X(Math.min(length, chosen.size));
  if (!still)
    parts.push(grip(border, TOP + TALL / 2, { what: "group", label: "End of the first group", upright: 22, ...range }));
  const grey = `linear-gradient(90deg,color-mix(in srgb,${c("ink")} 8%,transparent),color-mix(in srgb,${c("ink")} 88%,transparent))`;
  const key = `<p class="key"><span><i style="width:3.5rem;background:${grey}"></i>error in a group, 0 to ${percent(most)}</span></p>`;
  const told = still ? "" : '<p class="note">Drag the end of the first group to make all groups larger or smaller.</p>';
  return svg(width, 120, `${words}: ${int(chosen.strip.length)} groups`, parts.join("")) + key + told;
}

/** The measured group size whose first group ends nearest to `x` pixels. */
export function sizeAt(x, points, { width }) {
  return points[nearestSize(points, Math.max(1, toScale(points, width).invert(x)))].size;
}
