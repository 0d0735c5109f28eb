// The effect of one group size on a measured matrix. A point: {size, bits, cost, error, expected, shares}, the last one the
// share of the weights on each level, lowest first.

export const toZero = ({ shares }) => shares[(shares.length - 1) / 2];

/** The smallest number of levels that hold 90 % of the weights. */
export function levelsUsed({ shares }) {
  let held = 0;
  const fullest = [...shares].sort((a, b) => b - a);
  for (let n = 0; n < fullest.length; n++) {
    held += fullest[n];
    if (held >= 0.9 - 1e-9) return n + 1;
  }
  return fullest.length;
}

/** Which of the measured points has the group size nearest to `size`, on a logarithmic scale. */
export const nearestSize = (points, size) =>
  points.reduce(
    (best, point, i) =>
      Math.abs(Math.log(point.size / size)) < Math.abs(Math.log(points[best].size / size)) ? i : best,
    0,
  );
