// What a run says in words, run by `node --test` from test_page_parts.py.

import assert from "node:assert/strict";
import { test } from "node:test";
import { howItEnded, judge, summary } from "../../book/site/verdict.js";

const ran = (output, error = null) => ({ output, error, ended: "normally" });

test("a refused input must end with an error", () => {
  assert.equal(judge({ refused: true }, ran("", "ValueError: no weights\n"), 60).right, true);
  assert.match(judge({ refused: true }, ran("1\n"), 60).why, /^this input must end with an error/);
});

test("a difference is told with its place", () => {
  assert.equal(judge({ expected: "1\n" }, ran("2\n"), 60).why, "Line 1 differs at character 1: expected 1, got 2");
});

test("a time limit is told in seconds", () => {
  assert.match(judge({ expected: "" }, { ended: "timeout" }, 60).why, /^The program ran for 60 seconds/);
});

test("a browser without WebAssembly is told so, and not that a recursion went too deep", () => {
  const told = howItEnded({ ended: "unavailable", error: "no WebAssembly" }, 60);
  assert.match(told, /no WebAssembly/);
  assert.match(told, /`python program\.py`/);
  assert.doesNotMatch(told, /recursion/);
});

test("a recursion is blamed where the stack overflowed, and otherwise the reason is the browser's own", () => {
  assert.match(
    howItEnded({ ended: "broken", error: "Maximum call stack size exceeded" }, 60),
    /recursion goes too deep/,
  );
  assert.match(howItEnded({ ended: "broken", error: "exit(3)" }, 60), /broke down \(exit\(3\)\)/);
});

test("the sentence after a run counts what was right", () => {
  assert.equal(summary({ right: 1, of: 2, firstFault: "B: no", more: 9 }), "1 of 2 right. B: no");
  assert.equal(summary({ right: 2, of: 2, more: 9 }), "Both samples are right. Now check all 9 cases.");
  assert.equal(summary({ right: 9, of: 9, earned: 30 }), "All 9 cases are right. 30 XP earned.");
});
