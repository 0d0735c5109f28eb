// What a run shows: the verdict, input, expected and actual output side by side, the first difference marked.

import { h } from "../../interactives/src/shared/dom.js";
import { tidy } from "./compare.js";
import limits from "./program_limits.json";

const CUT = `the first ${limits.outputCharacters.toLocaleString("en")} characters`;

const shownInput = (text) => (text === "" ? "(nothing)" : text.replaceAll("\r\n", "␍\n"));

/** The lines of an output; the first difference is marked from its character on. */
function lines(text, difference, label) {
  const found = tidy(text);
  const block = h("pre", { tabindex: "0", "aria-label": label });
  if (found.length === 0) block.append(h("span", { class: "practice-nothing" }, "(nothing)"));
  found.forEach((line, index) => {
    if (index > 0) block.append("\n");
    if (difference?.line === index) {
      block.append(
        h(
          "span",
          { class: "practice-line" },
          line.slice(0, difference.column),
          h("mark", {}, line.slice(difference.column) || "⏎"),
        ),
      );
    } else block.append(line);
  });
  if (difference && difference.line >= found.length)
    block.append(found.length ? "\n" : "", h("mark", {}, "(line missing)"));
  return block;
}

const part = (title, body) => h("div", {}, h("p", { class: "practice-label" }, title), body);

/** One case as a disclosure; `open` shows it at once. */
export function caseView(one, { output, errors, error, cut }, verdict, open) {
  const body = [];
  body.push(part("Input", h("pre", { tabindex: "0", "aria-label": "Input" }, shownInput(one.input))));
  if (!verdict.right) body.push(h("p", { class: "practice-why" }, verdict.why));
  if (one.refused) {
    body.push(part("Your output", lines(output, null, "Your output")));
  } else {
    body.push(
      h(
        "div",
        { class: "practice-pair" },
        part("Expected", lines(one.expected, verdict.difference, "Expected output")),
        part(cut ? `Yours (${CUT})` : "Yours", lines(output, verdict.difference, "Your output")),
      ),
    );
  }
  if (error !== null && !(one.refused && verdict.right))
    body.push(part("Error", h("pre", { class: "practice-error", tabindex: "0", "aria-label": "Error" }, error)));
  if (errors) body.push(part("Standard error", h("pre", { tabindex: "0", "aria-label": "Standard error" }, errors)));
  const mark = verdict.right
    ? h("span", { class: "practice-right" }, "✓ right")
    : h("span", { class: "practice-wrong" }, "✗ not yet");
  return h("details", { open }, h("summary", {}, mark, ` ${one.name}`), body);
}

/** The output of a run with the learner's own input. */
export function plainOutput({ output, errors, error, cut }, ended) {
  const body = [part(cut ? `Output (${CUT})` : "Output", lines(output, null, "Output"))];
  if (errors) body.push(part("Standard error", h("pre", { tabindex: "0", "aria-label": "Standard error" }, errors)));
  if (ended) body.push(h("p", { class: "practice-why" }, ended));
  if (error)
    body.push(part("Error", h("pre", { class: "practice-error", tabindex: "0", "aria-label": "Error" }, error)));
  return h("div", {}, body);
}
