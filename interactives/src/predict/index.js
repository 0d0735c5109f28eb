// One prediction: commit to a number, then see the answer and why. A wrong one comes back in the review.

import { judge } from "../shared/answers.js";
import { ask } from "../shared/asking.js";
import { h, words } from "../shared/dom.js";
import { makeFrame } from "../shared/frame.js";
import { store } from "../shared/store.js";

const MARK = "course-prediction";

/** Opens what stood covered below a prediction: outputs and the explanation, up to the next prediction. */
function uncover(el) {
  for (const below of document.querySelectorAll(`details.explain, details.above-output, .${MARK}`)) {
    if (!(el.compareDocumentPosition(below) & Node.DOCUMENT_POSITION_FOLLOWING)) continue;
    if (!below.matches("details")) return;
    below.open = true;
    if (below.matches(".explain")) return;
  }
}

function render({ model, el }) {
  el.classList.add(MARK);
  const { key, variant } = model.get("data");
  const { frame, say, end } = makeFrame(el, "Prediction", "predict");
  const question = { id: key, kind: "numeric", variants: [variant] };
  const one = ask(question, variant, { label: "", seed: key, say });
  const commit = h("button", { type: "button", class: "main", click: decide }, "Commit");
  const row = h("div", { class: "row" }, commit);
  one.element.addEventListener("keydown", (event) => {
    if (event.key === "Enter" && !one.element.disabled) decide();
  });

  function decide() {
    const { answer, why } = one.read();
    if (why !== undefined) return one.focus();
    store().recordPrediction({
      key,
      question: words(variant.prompt),
      answer: variant.answer,
      unit: variant.unit,
      guess: answer,
      correct: judge("numeric", variant, answer).right,
      explain: words(variant.explain),
      tolerance: variant.tolerance,
    });
    show(answer, true);
  }

  function show(answer, justNow) {
    const { right } = one.reveal(answer);
    row.remove();
    uncover(el);
    if (!justNow) return;
    const box = one.element.querySelector(".feedback");
    box.setAttribute("tabindex", "-1");
    box.focus();
    say(`${right ? "Right" : "Not this"}: it is ${variant.shown} ${variant.unit}.`);
  }

  frame.append(h("p", { class: "title" }, "Your prediction"), one.element, row);
  const before = store().prediction(key);
  if (before && typeof before.guess === "number") show(before.guess, false);
  return end;
}

export default { render };
