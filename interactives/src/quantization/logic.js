// Group-wise absmax rounding as reference_impl/quantization/groupwise.py does it: float32 scales, ties to even.

export const largest = (bits) => 2 ** (bits - 1) - 1;

/** Nearest whole number, a tie to the even one. */
export function halfEven(value) {
  const down = Math.floor(value);
  const rest = value - down;
  if (rest !== 0.5) return Math.round(value);
  return down % 2 === 0 ? down : down + 1;
}

/** {q, scales, restored}: `group` consecutive weights share a scale, the last group may be shorter. */
export function quantize(weights, bits, group) {
  const most = largest(bits);
  const [q, scales, restored] = [[], [], []];
  for (let start = 0; start < weights.length; start += group) {
    const part = weights.slice(start, start + group).map(Math.fround);
    const scale = Math.fround(Math.max(...part.map(Math.abs)) / most);
    scales.push(scale);
    for (const weight of part) {
      const level = scale === 0 ? 0 : Math.max(-most, Math.min(most, halfEven(weight / scale)));
      q.push(level);
      restored.push(Math.fround(level * scale));
    }
  }
  return { q, scales, restored };
}

export function relativeError(weights, restored) {
  let [loss, power] = [0, 0];
  weights.forEach((weight, i) => {
    loss += (weight - restored[i]) ** 2;
    power += weight ** 2;
  });
  return power === 0 ? 0 : Math.sqrt(loss / power);
}

/** 1, 2, 2.5 or 5 times a power of ten, at least `value`. */
export function roundUp(value) {
  const power = 10 ** Math.floor(Math.log10(value));
  return [1, 2, 2.5, 5, 10].map((m) => m * power).find((round) => round >= value * 0.9999);
}

/** Where the outlier stands, how far it can be dragged, and how wide the other weights spread. */
export function frame(weights, given) {
  const sizes = weights.map(Math.abs);
  // Of given weights the largest is the outlier; the figure's own have none until one is dragged.
  const at = given ? sizes.indexOf(Math.max(...sizes)) : Math.floor(weights.length * 0.33);
  const others = Math.max(...sizes.filter((_, i) => i !== at)) || sizes[at] || 1;
  return { at, limit: roundUp(Math.max(8 * others, given ? sizes[at] * 1.05 : 0)), spread: roundUp(1.5 * others) };
}

/** Cost and loss of one choice; `at` is the place of the outlier. */
export function measure(weights, { bits, group, outlier }, at) {
  const list = weights.map((weight, i) => (i === at ? outlier : weight));
  const { q, scales, restored } = quantize(list, bits, group);
  const others = (values) => values.filter((_, i) => i !== at);
  const first = Math.floor(at / group) * group;
  const inside = q.slice(first, first + group);
  return {
    weights: list,
    q,
    scales,
    restored,
    bitsPerWeight: bits + (16 * scales.length) / list.length,
    error: relativeError(list, restored),
    errorOthers: relativeError(others(list), others(restored)), // of all weights but the outlier
    zeros: q.filter((level, i) => level === 0 && list[i] !== 0).length,
    first,
    levelsUsed: new Set(inside).size, // in the outlier's group
    levels: 2 * largest(bits) + 1,
    groupZeros: inside.filter((level, i) => level === 0 && list[first + i] !== 0).length,
    groupSize: inside.length,
    groupScale: scales[Math.floor(at / group)],
  };
}
