// Draws a question's variant and order, reads answers and judges them. Pure functions; Python has computed every key.

/** A small seeded generator (mulberry32): the same try of the same question looks the same in every browser. */
export function seeded(text) {
  let state = 0x811c9dc5;
  for (const letter of text) state = Math.imul(state ^ letter.codePointAt(0), 0x01000193);
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
}

/** 0 … n − 1 in an order that the seed text decides. */
export function shuffled(n, seed) {
  const random = seeded(seed);
  const order = Array.from({ length: n }, (_, index) => index);
  for (let last = n - 1; last > 0; last -= 1) {
    const other = Math.floor(random() * (last + 1));
    [order[last], order[other]] = [order[other], order[last]];
  }
  return order;
}

/** As `shuffled`, but never the right order, which would be given away. */
export function scrambled(n, seed) {
  const order = shuffled(n, seed);
  return order.every((value, index) => value === index) ? [...order.slice(1), order[0]] : order;
}

/** Index of the variant of a try; tries after each other have different ones as long as there are any. */
export function variantIndex(question, attempt, seed = "") {
  return shuffled(question.variants.length, `${question.id}/${seed}`)[attempt % question.variants.length];
}

const GROUPED = /^[+-]?\d{1,3}(?:,\d{3})+(?:\.\d+)?$/;
const DECIMAL_COMMA = /^[+-]?\d+,\d+$/;
const NUMBER = /^[+-]?(?:\d+\.?\d*|\.\d+)(?:e[+-]?\d+)?$/i;

const isDigit = (code) => /\p{Nd}/u.test(String.fromCodePoint(code));

/** A digit of any script as 0 to 9: Unicode keeps the ten digits of a script together and in order. */
function asciiDigit(digit) {
  const code = digit.codePointAt(0);
  let value = 0;
  while (value < 9 && isDigit(code - value - 1)) value += 1;
  return String(value);
}

/**
 * Read the number that a learner typed, alike in every number box: {value} or {why}.
 *
 * "1,472" and "1 472" are thousands, "4,79" is a decimal comma, and digits of any script are digits.
 */
export function parseNumber(typed, unit = "") {
  let text = typed
    .normalize("NFKC")
    .replace(/\p{Nd}/gu, asciiDigit)
    .replaceAll("٫", ".")
    .replaceAll("٬", ",")
    .trim()
    .replaceAll("−", "-")
    .replace(/^[~≈]\s*/, "");
  if (text === "") return { why: "Type a number." };
  if (unit && text.toLowerCase().endsWith(unit.toLowerCase())) text = text.slice(0, -unit.length).trim();
  text = text.replace(/(\d)[\s'’_](?=\d{3}\b)/g, "$1");
  if (GROUPED.test(text)) text = text.replaceAll(",", "");
  else if (DECIMAL_COMMA.test(text)) text = text.replace(",", ".");
  const value = NUMBER.test(text) ? Number(text) : NaN;
  if (Number.isFinite(value)) return { value };
  return { why: unit ? `Only a number, please; the unit is ${unit}.` : "Only a number, please." };
}

const near = (value, target, tolerance) => Math.abs(value - target) <= tolerance * Math.abs(target) + 1e-12;

/**
 * {right, mistake}. `answer`: a number; the index of an option; the items' indices in the learner's order.
 * `mistake`: {name, explain} of the mistake that leads to this answer, or null.
 */
export function judge(kind, variant, answer) {
  if (kind === "numeric") {
    const right = near(answer, variant.answer, variant.tolerance);
    const mistake = right ? null : variant.mistakes.find((one) => near(answer, one.value, variant.tolerance));
    return { right, mistake: mistake ?? null };
  }
  if (kind === "choice") {
    const option = variant.options[answer];
    return {
      right: option.correct,
      mistake: option.correct ? null : { name: option.mistake, explain: option.explain },
    };
  }
  return { right: answer.every((item, place) => item === place), mistake: null };
}

/** Numbers as a learner's answer is repeated: thousands separated, at most six significant digits. */
export const shownNumber = (value) => value.toLocaleString("en-US", { maximumSignificantDigits: 6 }).replace(/^-/, "−");
