// Expected and actual output, compared as a reader sees them: spaces at the end of a line, empty lines at the end and
// the sign of a printed zero such as -0.00 do not count; everything else does.

const MINUS_ZERO = /(^|[^\w.+-])-(?=0\.0+(?![\w.]))/g;

export function tidy(text) {
  const lines = text
    .replaceAll("\r\n", "\n")
    .split("\n")
    .map((line) => line.trimEnd().replace(MINUS_ZERO, "$1"));
  while (lines.length && lines.at(-1) === "") lines.pop();
  return lines;
}

/** null where they agree, else {line, column} of the first difference, counted from 0. */
export function firstDifference(expected, actual) {
  const [wanted, got] = [tidy(expected), tidy(actual)];
  for (let line = 0; line < Math.max(wanted.length, got.length); line += 1) {
    const [one, other] = [wanted[line], got[line]];
    if (one === other) continue;
    let column = 0;
    while (column < Math.min(one?.length ?? 0, other?.length ?? 0) && one[column] === other[column]) column += 1;
    return { line, column };
  }
  return null;
}

/** One sentence about a difference. */
export function sayDifference(expected, actual, { line, column }) {
  const [one, other] = [tidy(expected)[line], tidy(actual)[line]];
  if (other === undefined) return `Line ${line + 1} is missing: ${one}`;
  if (one === undefined) return `Line ${line + 1} is too much: ${other}`;
  return `Line ${line + 1} differs at character ${column + 1}: expected ${one}, got ${other}`;
}
