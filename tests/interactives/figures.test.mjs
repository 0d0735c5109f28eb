// What the figures ask and offer, run by `node --test` from test_figure_logic.py: their definitions need no browser.

import assert from "node:assert/strict";
import { test } from "node:test";
import { GPUS } from "../../interactives/src/generated/constants.js";
import { isRight, questionName, verdict } from "../../interactives/src/shared/question.js";

const built = (name) => import(`../../interactives/static/${name}.js`).then((module) => module.default);
const ENV = { gpu: GPUS["h100-sxm"], gpuKey: "h100-sxm", width: 640, shown: true, still: true, local: {}, id: "t" };

test("where all gaps are equal, every rule is a right answer to which stalls longest", async () => {
  const { def } = await built("timeline");
  const question = def.question({ ...def.defaults, slots: 1 }, ENV);
  assert.deepEqual(
    question.options.map((_, i) => isRight(question, i)),
    [true, true, true],
  );
  const several = def.question(def.defaults, ENV);
  assert.equal(several.options.filter((option) => option.correct).length, 1);
});

test("a verdict is a sentence: no zeros that were not typed, no capital in the middle", async () => {
  const percent = { kind: "number", text: "?", unit: "%", answer: 46, show: "46", tolerance: 0.1, explain: "So." };
  assert.match(verdict(percent, 7), /You said: 7\u202f%\.<\/span> The answer: <strong>46\u202f%\.<\/strong> So\./);
  const { def } = await built("roofline");
  const said = verdict(def.question(def.defaults, ENV), 0);
  assert.match(said, /The answer: <strong>At no batch size\.<\/strong>/);
});

test("a context is at most the model's own", async () => {
  const { def } = await built("roofline");
  const most = (model) => def.controls({ ...def.defaults, model }, ENV).find(({ key }) => key === "context").max;
  assert.deepEqual(["llama-2-7b", "llama-3-8b", "llama-3.2-1b"].map(most), [4096, 8192, 131072]);
});

test("the slider of a contiguous slot starts at the longest sequence, which always fits", async () => {
  const { def } = await built("paged");
  const slot = def.controls({ ...def.defaults, lengths: [511, 9] }, ENV).find(({ key }) => key === "reserved");
  assert.equal(slot.min, 511);
  assert.deepEqual(slot.stops, [511, 512, 768, 1024]);
});

test("lengths that are no numbers are refused, and a broken address shows the default ones", async () => {
  const paged = await built("paged");
  const { parse } = paged.def.controls(paged.def.defaults, ENV)[0];
  assert.deepEqual(parse("٣٧, 9"), [37, 9]);
  assert.throws(() => parse("5, x"), /Each length is a whole number/);
  assert.match(paged.still({ lengths: [5, Number.NaN] }).say, /^Contiguous: /);
});

test("figures that start from other settings ask another question, whatever GPU is chosen", () => {
  const defaults = { batch: 8, gpu: "" };
  assert.equal(questionName("q", { batch: 8, gpu: "h200" }, defaults), "q");
  assert.notEqual(questionName("q", { batch: 64, gpu: "" }, defaults), "q");
});

for (const name of ["roofline", "batching", "draft", "sizing", "quantization", "paged", "timeline", "speculative"]) {
  test(`${name} draws every extreme of its settings, at any width, before and after the answer`, async () => {
    const { def } = await built(name);
    const specs = def.controls(def.defaults, ENV);
    const extremes = (spec) => {
      if (spec.kind === "number") return [spec.min, spec.max];
      return spec.kind === "choice" ? spec.options.map(([value]) => value) : [def.defaults[spec.key]];
    };
    const states = specs.flatMap((spec) => extremes(spec).map((value) => ({ ...def.defaults, [spec.key]: value })));
    for (const end of [0, -1]) {
      states.push({ ...def.defaults, ...Object.fromEntries(specs.map((spec) => [spec.key, extremes(spec).at(end)])) });
    }
    for (const state of states) {
      for (const [width, shown, still] of [
        [288, true, false],
        [288, false, false],
        [640, true, true],
        [1100, true, false],
      ]) {
        const { figure, say } = def.view(state, { ...ENV, width, shown, still });
        const where = `${JSON.stringify(state)}, ${width}, ${shown}`;
        assert.doesNotMatch(figure, /NaN|undefined|Infinity|="-\d[^"]*" rx/, where);
        assert.doesNotMatch(say, /NaN|undefined|\de\+/, where);
      }
    }
  });
}
