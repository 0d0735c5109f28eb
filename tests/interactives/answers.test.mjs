// How answers are read and judged, run by `node --test` from test_questions.py.

import assert from "node:assert/strict";
import { test } from "node:test";
import { judge, parseNumber, scrambled, shuffled, variantIndex } from "../../interactives/src/shared/answers.js";

const NUMERIC = {
  answer: 208.58,
  tolerance: 0.02,
  unit: "tokens/s",
  mistakes: [{ value: 26.07, name: "bits counted as bytes", explain: "an eighth" }],
};

for (const [typed, value] of [
  ["208.6", 208.6],
  [" 209 ", 209],
  ["1,472", 1472],
  ["1 472", 1472],
  ["1\u202f472.5", 1472.5],
  ["4,79", 4.79],
  ["-8", -8],
  ["−8", -8],
  ["208.6 tokens/s", 208.6],
  ["~209", 209],
  ["≈ 209", 209],
  ["2e3", 2000],
  [".5", 0.5],
  ["12,345,678.9", 12345678.9],
  ["5.", 5],
  ["٢٠٨٫٦", 208.6],
  ["２０８.６", 208.6],
  ["१,४७२", 1472],
  ["١٬٤٧٢٫٥", 1472.5],
  ["1’472", 1472],
]) {
  test(`"${typed}" is read as ${value}`, () => assert.deepEqual(parseNumber(typed, "tokens/s"), { value }));
}

for (const typed of ["", "  ", "two", "1,2,3", "NaN", "Infinity", "1e999", "4 ms", "0x10", "1/2"]) {
  test(`"${typed}" is no number, and the reason is said`, () => {
    assert.equal(parseNumber(typed, "tokens/s").value, undefined);
    assert.match(parseNumber(typed, "tokens/s").why, /number/);
  });
}

test("a number within the tolerance is right, beyond it wrong", () => {
  assert.deepEqual(judge("numeric", NUMERIC, 208.58 * 1.0199), { right: true, mistake: null });
  assert.deepEqual(judge("numeric", NUMERIC, 208.58 * 1.021), { right: false, mistake: null });
});

test("a number that a known mistake gives is recognised", () => {
  assert.equal(judge("numeric", NUMERIC, 26).mistake.name, "bits counted as bytes");
  assert.equal(judge("numeric", NUMERIC, 30).mistake, null);
});

test("zero is right only when it is the answer", () => {
  assert.equal(judge("numeric", { ...NUMERIC, answer: 0, mistakes: [] }, 0).right, true);
  assert.equal(judge("numeric", { ...NUMERIC, answer: 0, mistakes: [] }, 0.01).right, false);
  assert.equal(judge("numeric", NUMERIC, 0).right, false);
});

test("a wrong option names its mistake", () => {
  const variant = {
    options: [
      { correct: true, mistake: null, explain: ["yes"] },
      { correct: false, mistake: "GB for GiB", explain: ["no"] },
    ],
  };
  assert.deepEqual(judge("choice", variant, 0), { right: true, mistake: null });
  assert.deepEqual(judge("choice", variant, 1), { right: false, mistake: { name: "GB for GiB", explain: ["no"] } });
});

test("an order is right only as a whole", () => {
  assert.equal(judge("ordering", { items: ["a", "b", "c"] }, [0, 1, 2]).right, true);
  assert.equal(judge("ordering", { items: ["a", "b", "c"] }, [0, 2, 1]).right, false);
});

test("options are shuffled the same way for the same seed, and not always the same way", () => {
  assert.deepEqual(shuffled(4, "a"), shuffled(4, "a"));
  const orders = new Set(Array.from({ length: 200 }, (_, seed) => shuffled(4, `quiz/${seed}`).join("")));
  assert.equal(orders.size, 24); // all of them appear: missing one by chance has a probability below 1 in 200
  const firsts = Array.from({ length: 400 }, (_, seed) => shuffled(4, `quiz/${seed}`)[0]);
  for (const option of [0, 1, 2, 3]) assert.ok(firsts.filter((first) => first === option).length > 60);
});

test("an ordering never starts in the right order", () => {
  for (let seed = 0; seed < 500; seed += 1) assert.notDeepEqual(scrambled(3, `${seed}`), [0, 1, 2]);
});

test("a retry draws other numbers until all were seen", () => {
  const question = { id: "bound", variants: [0, 1, 2] };
  const drawn = [0, 1, 2, 3].map((attempt) => variantIndex(question, attempt, "01"));
  assert.equal(new Set(drawn.slice(0, 3)).size, 3);
  assert.equal(drawn[3], drawn[0]);
});
