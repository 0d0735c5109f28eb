// Figures as SVG text: pure functions of their data, so Node can draw them too. Colours are the variables of style.css,
// with the light ones as defaults: a figure that left its page is still readable.
import { esc, tick } from "./format.js";

const LIGHT = {
  ink: "#1b1f24",
  muted: "#57606a",
  line: "#d0d7de",
  bg: "#ffffff",
  soft: "#f3f5f7",
  blue: "#0072b2",
  orange: "#d55e00",
  green: "#009e73",
  sky: "#3b8fc4",
  yellow: "#b57d00",
  purple: "#b1568f",
  "blue-t": "#00639c",
  "orange-t": "#b04d00",
  "green-t": "#00734f",
  "purple-t": "#97437a",
};
// Two colours carry the course: bytes on their way from memory, and arithmetic. A third is for drafts and guesses.
const MEANING = { memory: "blue", work: "orange", draft: "purple" };
const meant = (name) => name.replace(/^(memory|work|draft)/, (word) => MEANING[word]);
export const c = (name) => `var(--x-${name},${LIGHT[meant(name)]})`;

/** A number as an SVG coordinate. */
export const px = (value) => (Math.round(value * 100) / 100).toString();

export function scale({ min, max, log = false }, from, to) {
  const f = log ? Math.log : (value) => value;
  const [low, high] = [f(min), f(max)];
  const map = (value) => from + ((f(value) - low) / (high - low)) * (to - from);
  map.invert = (at) => {
    const value = low + ((at - from) / (to - from)) * (high - low);
    return log ? Math.exp(value) : value;
  };
  return map;
}

/** Round numbers from min to max, about `count` of them. */
export function ticks({ min, max, log = false }, count = 6) {
  if (log) {
    const decades = Math.log10(max / min);
    const mantissas = decades <= count / 3 ? [1, 2, 5] : decades <= count ? [1] : [1];
    const every = Math.max(1, Math.ceil(decades / count));
    const found = [];
    for (let power = Math.floor(Math.log10(min)); power <= Math.ceil(Math.log10(max)); power++) {
      if (power % every) continue;
      for (const mantissa of mantissas) found.push(mantissa * 10 ** power);
    }
    return found.filter((value) => value >= min * 0.999 && value <= max * 1.001);
  }
  const raw = (max - min) / count;
  const magnitude = 10 ** Math.floor(Math.log10(raw));
  const step = [1, 2, 2.5, 5, 10].map((m) => m * magnitude).find((value) => value >= raw * 0.999);
  const found = [];
  for (let i = Math.ceil(min / step - 1e-9); i * step <= max + step * 1e-6; i++) found.push(i * step + 0);
  return found;
}

export function text(x, y, words, { anchor = "start", color = "ink", weight = 400, size = 12, halo = true } = {}) {
  const ring = halo ? `paint-order="stroke" stroke="${c("bg")}" stroke-width="3.5" stroke-linejoin="round"` : "";
  return `<text x="${px(x)}" y="${px(y)}" text-anchor="${anchor}" fill="${c(color)}" font-size="${size}" font-weight="${weight}" ${ring}>${esc(words)}</text>`;
}

export const line = (x1, y1, x2, y2, { color = "ink", width = 1.5, dash = "" } = {}) =>
  `<line x1="${px(x1)}" y1="${px(y1)}" x2="${px(x2)}" y2="${px(y2)}" stroke="${c(color)}" stroke-width="${width}"${dash ? ` stroke-dasharray="${dash}"` : ""}/>`;

export const rect = (x, y, width, height, { fill = "blue", stroke = "", radius = 0, opacity = 1 } = {}) =>
  `<rect x="${px(x)}" y="${px(y)}" width="${px(Math.max(0, width))}" height="${px(Math.max(0, height))}" fill="${fill.startsWith("url") || fill === "none" ? fill : c(fill)}"${stroke ? ` stroke="${c(stroke)}"` : ""}${radius ? ` rx="${radius}"` : ""}${opacity < 1 ? ` opacity="${opacity}"` : ""}/>`;

export const path = (points, { color = "blue", width = 2, dash = "", fill = "none" } = {}) =>
  `<path d="${points.map(([x, y], i) => `${i ? "L" : "M"}${px(x)} ${px(y)}`).join("")}" fill="${fill}" stroke="${c(color)}" stroke-width="${width}" stroke-linejoin="round" stroke-linecap="round"${dash ? ` stroke-dasharray="${dash}"` : ""}/>`;

export const dot = (x, y, { color = "blue", r = 6, hollow = false } = {}) =>
  `<circle cx="${px(x)}" cy="${px(y)}" r="${r}" fill="${hollow ? c("bg") : c(color)}" stroke="${hollow ? c(color) : c("bg")}" stroke-width="2"/>`;

/** Axes with the units said once: the y label stands above the axis, level, the x label below its end. */
export function axes({ width, height, left = 52, right = 14, top = 30, bottom = 42, x, y, grid = true }) {
  const X = scale(x, left, width - right);
  const Y = scale(y, height - bottom, top);
  const parts = [];
  for (const value of y.ticks ?? ticks(y, y.count ?? Math.max(3, Math.round((height - top - bottom) / 45)))) {
    if (grid) parts.push(line(left, Y(value), width - right, Y(value), { color: "line", width: 1 }));
    parts.push(text(left - 7, Y(value) + 4, (y.format ?? tick)(value), { anchor: "end", color: "muted", halo: false }));
  }
  for (const value of x.ticks ?? ticks(x, x.count ?? Math.max(3, Math.round((width - left - right) / 80)))) {
    parts.push(line(X(value), height - bottom, X(value), height - bottom + 4, { color: "muted", width: 1 }));
    parts.push(
      text(X(value), height - bottom + 17, (x.format ?? tick)(value), {
        anchor: "middle",
        color: "muted",
        halo: false,
      }),
    );
  }
  parts.push(line(left, height - bottom, width - right, height - bottom, { color: "muted", width: 1 }));
  if (y.label) parts.push(text(4, 14, y.label, { color: "muted", halo: false }));
  if (x.label) parts.push(text(width - right, height - 6, x.label, { anchor: "end", color: "muted", halo: false }));
  return { X, Y, svg: parts.join(""), left, right: width - right, top, bottom: height - bottom };
}

/** A picture. With grips in it, it is a group: the parts of an img are not there for a screen reader. */
export const svg = (width, height, label, inner, { clip = false } = {}) =>
  `<svg role="${inner.includes('role="slider"') ? "group" : "img"}" aria-label="${esc(label)}" viewBox="0 0 ${px(width)} ${px(height)}" width="${px(width)}" height="${px(height)}" style="max-width:100%;height:auto;font-family:inherit${clip ? ";overflow:hidden" : ""}" xmlns="http://www.w3.org/2000/svg">${inner}</svg>`;

/**
 * A handle to drag, with arrows that say so; for the keyboard it is a slider. `what` names it for the figure's `drag`
 * and `nudge`, `upright` is half the length of a bar through it.
 */
export function grip(x, y, { what, label, now, min, max, words, upright = 0, knob = true }) {
  const [ink, bg] = [c("ink"), c("bg")];
  const bar = upright
    ? `<line data-m="bar-${what}" x1="${px(x)}" y1="${px(y - upright)}" x2="${px(x)}" y2="${px(y + upright)}" stroke="${ink}" stroke-width="3"/>`
    : "";
  const arrows = `<path d="M${px(x - 11)} ${px(y - 4)}l-5 4l5 4M${px(x + 11)} ${px(y - 4)}l5 4l-5 4" fill="none" stroke="${ink}" stroke-width="1.8" stroke-linejoin="round" stroke-linecap="round"/>`;
  const dot = knob
    ? `<circle class="knob" data-m="knob-${what}" cx="${px(x)}" cy="${px(y)}" r="7" fill="${bg}" stroke="${ink}" stroke-width="2.5"/>`
    : "";
  const value = `aria-valuemin="${min}" aria-valuemax="${max}" aria-valuenow="${now}" aria-valuetext="${esc(words)}"`;
  return `<g class="grip" role="slider" tabindex="0" aria-label="${esc(label)}" ${value} data-drag="${what}" data-key="grip-${what}" style="cursor:ew-resize;touch-action:none">${bar}<circle class="reach" cx="${px(x)}" cy="${px(y)}" r="21" fill="transparent"/>${arrows}${dot}</g>`;
}

/** Diagonal hatching for what is reserved and unused: told from a plain colour by every eye and on paper. */
export const hatch = (id, color = "muted") =>
  `<pattern id="${id}" width="6" height="6" patternUnits="userSpaceOnUse" patternTransform="rotate(45)"><line x1="0" y1="0" x2="0" y2="6" stroke="${c(color)}" stroke-width="1.6"/></pattern>`;

const WIDE = 0.6; // of the font size: how wide a letter is taken to be
const LINE = 15;

/**
 * Places labels by rule: the first place that is free and inside the picture, else none. Labels put first win.
 * A place is [x, y, anchor]: y is the first line's ground.
 */
export class Labels {
  constructor(width, height) {
    Object.assign(this, { width, height, taken: [] });
  }

  /** Labels for a plot of axes(): inside it, and away from the names and numbers of its axes. */
  static within(plot, width) {
    const labels = new Labels(width, plot.bottom - 2);
    labels.keepOff(0, 0, plot.left - 2, plot.bottom);
    labels.keepOff(0, 0, width, 17);
    return labels;
  }

  /** Keep labels away from a part of the picture, such as a dot. */
  keepOff(x, y, width, height) {
    this.taken.push([x, y, x + width, y + height]);
  }

  /** SVG of one label of one or more lines, or "" where there is no room. */
  put(words, places, options = {}) {
    const lines = [words].flat();
    const size = options.size ?? 12;
    const long = Math.max(...lines.map((one) => one.length)) * size * WIDE;
    for (const [x, y, anchor = "start"] of places) {
      const left = x - { start: 0, middle: long / 2, end: long }[anchor];
      const box = [left, y - size, left + long, y + (lines.length - 1) * LINE + 3];
      if (!this.#free(box)) continue;
      this.taken.push(box);
      return lines
        .map((one, i) => text(x, y + i * LINE, one, { ...options, anchor, weight: i ? 400 : options.weight }))
        .join("");
    }
    return "";
  }

  #free([left, top, right, bottom]) {
    if (left < 0 || top < 0 || right > this.width || bottom > this.height) return false;
    return this.taken.every(([l, t, r, b]) => right <= l || left >= r || bottom <= t || top >= b);
  }
}

/** Places around a point, the nearest sides first. */
export const around = (x, y, r = 12) => [
  [x + r, y + r + 8, "start"],
  [x - r, y - r, "end"],
  [x + r, y - r, "start"],
  [x - r, y + r + 8, "end"],
  [x, y - r - 22, "middle"],
  [x, y + r + 26, "middle"],
];
