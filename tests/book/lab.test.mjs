// Which address of a JupyterLab a reader may paste, run by `node --test` from test_page_parts.py.

import assert from "node:assert/strict";
import { test } from "node:test";
import { labBase } from "../../book/site/lab.js";

for (const [pasted, base] of [
  ["http://localhost:8888/lab", "http://localhost:8888"],
  ["localhost:8889", "http://localhost:8889"],
  ["http://127.0.0.1:8890/lab?token=abc", "http://127.0.0.1:8890"],
  ["https://hub.example.edu/user/ada/lab/tree/notebooks/x.ipynb", "https://hub.example.edu/user/ada"],
  ["javascript:alert(1)", null],
  ["", null],
]) {
  test(`${pasted || "nothing"} is ${base ?? "no address"}`, () => assert.equal(labBase(pasted), base));
}
