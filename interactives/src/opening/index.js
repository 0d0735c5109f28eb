// Three questions before a lesson: answers are kept, nothing is revealed. closing/ asks them again at its end.

import { variantIndex } from "../shared/answers.js";
import { ask } from "../shared/asking.js";
import { h } from "../shared/dom.js";
import { makeFrame } from "../shared/frame.js";
import { store } from "../shared/store.js";

function render({ model, el }) {
  const quiz = model.get("data");
  const { frame, say, end } = makeFrame(el, "Questions before you start", "opening");

  const kept = store().opening(quiz.lesson);
  kept ? showKept(kept, false) : start();

  function start() {
    const chosen = quiz.opening.map((question) => variantIndex(question, 0, quiz.lesson));
    const asked = quiz.opening.map((question, index) =>
      ask(question, question.variants[chosen[index]], {
        label: `${index + 1}.`,
        seed: `${quiz.lesson}/${question.id}/opening`,
        say,
      }),
    );
    const keep = h("button", { type: "button", class: "main" }, "Keep my answers");
    const fault = h("p", { class: "fault", role: "alert" });
    keep.addEventListener("click", () => {
      const answers = {};
      for (const [index, one] of asked.entries()) {
        const found = one.read();
        if (found.why !== undefined && !found.empty) return one.focus();
        if (found.why === undefined && !found.untouched)
          answers[quiz.opening[index].id] = { variant: chosen[index], answer: found.answer };
      }
      if (Object.keys(answers).length === 0) {
        fault.textContent = "Answer at least one; a guess is enough.";
        return asked[0].focus();
      }
      store().keepOpening(quiz.lesson, answers);
      showKept(store().opening(quiz.lesson), true);
    });
    frame.replaceChildren(
      h("p", { class: "title" }, "Before you start"),
      h(
        "p",
        { class: "note" },
        "Guess. Nothing is revealed now: the same questions come again at the end, with your answers beside them.",
      ),
      ...asked.map((one) => one.element),
      fault,
      h("div", { class: "row" }, keep),
    );
  }

  function showKept(answers, justNow) {
    const lines = quiz.opening.map((question) => {
      const given = answers[question.id];
      const variant = question.variants[given?.variant ?? variantIndex(question, 0, quiz.lesson)];
      const said = given ? ask(question, variant, { seed: "", say }).said(given.answer) : "no answer";
      return h(
        "li",
        {},
        ask(question, variant, { seed: "", say }).element.querySelector("legend").textContent,
        " ",
        h("strong", {}, said),
      );
    });
    const told = "Your answers are kept. They come again at the end of the lesson.";
    const note = h("p", { tabindex: "-1" }, told);
    frame.replaceChildren(h("p", { class: "title" }, "Before you start"), note, h("ol", { class: "list" }, lines));
    if (justNow) {
      note.focus();
      say(told);
    }
  }

  return end;
}

export default { render };
