// The search finds words, numbers and code, and its snippets show where, run by `node --test` from test_page_parts.py.

import assert from "node:assert/strict";
import { test } from "node:test";
import { makeSearch, snippet } from "../../book/site/search.js";

const find = makeSearch([
  { page: "a.html", anchor: "", title: "Decode", heading: "Decode", text: "At most 208.6 tokens per second." },
  {
    page: "a.html",
    anchor: "weights",
    title: "Decode",
    heading: "Weights",
    text: "8,030,261,248 parameters of kv_cache.",
  },
  { page: "b.html", anchor: "", title: "Quantization", heading: "Quantization", text: "absmax scale of a group" },
]);
const pages = (query) => find(query).map(({ page, anchor }) => page + anchor);

for (const [query, wanted] of [
  ["208.6", ["a.html"]],
  ["8,030,261,248", ["a.htmlweights"]],
  ["8030261248", ["a.htmlweights"]],
  ["kv_cache", ["a.htmlweights"]],
  ["abs", ["b.html"]],
  ["quantisation", ["b.html"]],
  ["absmax group", ["b.html"]],
  ["999.9", []],
]) {
  test(`${query} is found where it stands`, () => assert.deepEqual(pages(query), wanted));
}

test("a snippet marks what was found and says where text was left out", () => {
  const text = `${"word ".repeat(60)}the bound is 208.6 tokens ${"more ".repeat(60)}`;
  const parts = snippet(text, ["208.6"]);
  assert.deepEqual(
    parts.filter(([, isFound]) => isFound),
    [["208.6", true]],
  );
  assert.equal(parts[0][0], "… ");
  assert.equal(parts.at(-1)[0], " …");
  assert.ok(parts.map(([part]) => part).join("").length < 220);
});
