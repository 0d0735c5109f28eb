// Numbers as a reader wants them. Sizes are decimal: 1 GB is 10^9 bytes.
const HTML = { "&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;", "'": "&#39;" };
export const esc = (text) => String(text).replace(/[&<>"']/g, (sign) => HTML[sign]);

/** A number with `digits` significant ones, never in exponent form: 0.0521, 4.79, 1,472, 12,300. */
export function num(value, digits = 3) {
  if (value === Infinity) return "∞";
  if (!Number.isFinite(value)) return "–";
  if (value === 0) return "0";
  const places = Math.max(0, digits - 1 - Math.floor(Math.log10(Math.abs(value)) + 1e-12));
  return fixed(value, Math.min(places, 8));
}

/** `places` digits behind the point, commas between thousands. By hand: a locale's formatter takes 30 µs a number. */
export function fixed(value, places = 0) {
  const [whole, rest] = Math.abs(value).toFixed(places).split(".");
  const text = whole.replace(/\B(?=(\d{3})+$)/g, ",") + (rest ? `.${rest}` : "");
  return value < 0 && /[1-9]/.test(text) ? `−${text}` : text;
}

export const int = (value) => fixed(value, 0);
export const percent = (share, places = 0) => `${fixed(100 * share, places)} %`;

const SIZES = [
  [1e12, "TB"],
  [1e9, "GB"],
  [1e6, "MB"],
  [1e3, "kB"],
];
export function bytes(value, digits = 3) {
  for (const [size, unit] of SIZES) if (Math.abs(value) >= size * 0.9995) return `${num(value / size, digits)} ${unit}`;
  return `${int(value)} bytes`;
}

export function seconds(value, digits = 3) {
  if (value >= 1) return `${num(value, digits)} s`;
  if (value >= 1e-3) return `${num(value * 1e3, digits)} ms`;
  return `${num(value * 1e6, digits)} µs`;
}

export const plural = (n, one, many = `${one}s`) => `${int(n)} ${n === 1 ? one : many}`;

/** A round number as it is said or stands on an axis: at most five digits, no zeros behind the point. */
export function tick(value) {
  const text = fixed(value, Math.max(0, Math.min(8, 4 - Math.floor(Math.log10(Math.abs(value) || 1)))));
  return text.includes(".") ? text.replace(/\.?0+$/, "") : text;
}
