// How a program's output is compared, run by `node --test` from test_page_parts.py.

import assert from "node:assert/strict";
import { test } from "node:test";
import { firstDifference, sayDifference } from "../../book/site/compare.js";

for (const [name, expected, actual] of [
  ["the same text", "a\nb\n", "a\nb\n"],
  ["no line end at the end", "a\nb\n", "a\nb"],
  ["spaces and empty lines at the end", "a\nb\n", "a  \nb\n\n\n"],
  ["Windows line ends", "a\nb\n", "a\r\nb\r\n"],
  ["nothing and nothing", "", "\n"],
]) {
  test(`${name} is no difference`, () => assert.equal(firstDifference(expected, actual), null));
}

for (const [expected, actual, difference, said] of [
  [
    "scale 0.06299\n",
    "scale 0.06300\n",
    { line: 0, column: 10 },
    "Line 1 differs at character 11: expected scale 0.06299, got scale 0.06300",
  ],
  ["a\nb\n", "a\n", { line: 1, column: 0 }, "Line 2 is missing: b"],
  ["a\n", "a\nb\n", { line: 1, column: 0 }, "Line 2 is too much: b"],
  ["a\n", " a\n", { line: 0, column: 0 }, "Line 1 differs at character 1: expected a, got  a"],
  ["a\n\nb\n", "a\nb\n", { line: 1, column: 0 }, "Line 2 differs at character 1: expected , got b"],
]) {
  test(`${JSON.stringify(actual)} for ${JSON.stringify(expected)} differs where it does`, () => {
    assert.deepEqual(firstDifference(expected, actual), difference);
    assert.equal(sayDifference(expected, actual, difference), said);
  });
}
