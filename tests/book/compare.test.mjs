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
  ["minus zero", "scale 0.00000 q 0\n-0.0 0.0\n", "scale -0.00000 q 0\n0.0 -0.0\n"],
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
  ["0.001\n", "-0.001\n", { line: 0, column: 0 }, "Line 1 differs at character 1: expected 0.001, got -0.001"],
  ["a 0.0 1\n", "a -0.0 2\n", { line: 0, column: 6 }, "Line 1 differs at character 7: expected a 0.0 1, got a 0.0 2"],
  ["1-0.0\n", "10.0\n", { line: 0, column: 1 }, "Line 1 differs at character 2: expected 1-0.0, got 10.0"],
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
