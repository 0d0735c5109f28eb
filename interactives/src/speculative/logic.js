// One speculative round: what a draft drew from q is accepted or replaced so that the token is distributed as p
// (reference_impl/decoding/rejection.py and greedy.py). Random numbers are arguments.

/** Repeatable numbers in [0, 1): mulberry32. */
export function numbers(seed) {
  let state = (seed * 0x9e3779b9) >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4294967296;
  };
}

export const acceptance = (p, q) => p.reduce((sum, value, i) => sum + Math.min(value, q[i]), 0);

/** max(p - q, 0), normalised; p itself where nothing is left. */
export function residual(p, q) {
  const more = p.map((value, i) => Math.max(value - q[i], 0));
  const total = more.reduce((sum, value) => sum + value, 0);
  return total > 0 ? more.map((value) => value / total) : [...p];
}

/** The first token whose cumulative probability exceeds v. */
export function pick(probabilities, v) {
  const total = probabilities.reduce((sum, value) => sum + value, 0);
  let sum = 0;
  for (let token = 0; token < probabilities.length; token++) {
    sum += probabilities[token];
    if (v * total < sum) return token;
  }
  return probabilities.findLastIndex((value) => value > 0);
}

export const argmax = (values) => values.indexOf(Math.max(...values));

/** [accepted, token] for a token drawn from q. */
export function acceptOrResample(p, q, token, u, v) {
  return u < p[token] / q[token] ? [true, token] : [false, pick(residual(p, q), v)];
}

/** q moved towards p: 0 leaves it, 1 makes it p. */
export const closer = (p, q, share) => q.map((value, i) => value + share * (p[i] - value));

/** The steps of a round, one entry per judged place: the draw, the odds, the outcome. The last entry is the bonus token. */
export function round(places, { rule, k }, next) {
  const steps = [];
  const greedy = rule === "greedy";
  const drafted = places.slice(0, k).map(({ q }) => (greedy ? argmax(q) : pick(q, next())));
  for (let i = 0; i < k; i++) {
    const { p, q } = places[i];
    const u = greedy ? null : next();
    const token = drafted[i];
    const odds = greedy ? Number(argmax(p) === token) : Math.min(1, p[token] / q[token]);
    const accepted = greedy ? odds === 1 : u < p[token] / q[token];
    const chosen = accepted ? token : greedy ? argmax(p) : pick(residual(p, q), next());
    steps.push({ place: i, token, odds, u, accepted, chosen });
    if (!accepted) return { drafted, steps };
  }
  const { p } = places[k];
  steps.push({ place: k, bonus: true, accepted: true, chosen: greedy ? argmax(p) : pick(p, next()) });
  return { drafted, steps };
}

/** Counts of the first token over `n` rounds. */
export function firstTokens(p, q, rule, n, next, counts = p.map(() => 0)) {
  const found = [...counts];
  for (let i = 0; i < n; i++) {
    const token = rule === "greedy" ? argmax(p) : acceptOrResample(p, q, pick(q, next()), next(), next())[1];
    found[token]++;
  }
  return found;
}
