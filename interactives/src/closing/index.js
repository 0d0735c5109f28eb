// The opening questions again, with the first answers beside them; then the key and why. Questions still answered wrongly come back later.

import { variantIndex } from "../shared/answers.js";
import { ask } from "../shared/asking.js";
import { h } from "../shared/dom.js";
import { makeFrame } from "../shared/frame.js";
import { store } from "../shared/store.js";

function render({ model, el }) {
  const quiz = model.get("data");
  const { frame, say, end } = makeFrame(el, "The opening questions again", "closing");
  const first = store().opening(quiz.lesson) ?? {};
  const asked = quiz.opening.map((question, index) =>
    ask(
      question,
      question.variants[first[question.id]?.variant ?? variantIndex(question, 0, quiz.lesson)] ?? question.variants[0],
      {
        label: `${index + 1}.`,
        seed: `${quiz.lesson}/${question.id}/closing`,
        say,
        before: first[question.id]?.answer ?? null,
      },
    ),
  );
  const check = h("button", { type: "button", class: "main", click: finish }, "Check");
  const row = h("div", { class: "row" }, check);

  function finish() {
    const answers = asked.map((one) => one.read());
    const missing = answers.findIndex((answer) => answer.why !== undefined);
    if (missing >= 0) {
      asked[missing].focus();
      say(`Question ${missing + 1}: ${answers[missing].why}`);
      return;
    }
    const missed = [];
    asked.forEach((one, index) => {
      if (!one.reveal(answers[index].answer).right) missed.push(quiz.opening[index].id);
    });
    store().missed(quiz.lesson, missed);
    const right = asked.length - missed.length;
    const told = `${right} of ${asked.length} right.${missed.length ? " The others come back in today's review, from tomorrow on." : ""}`;
    const result = h("p", { class: "result", tabindex: "-1" }, told);
    row.replaceWith(result);
    result.focus();
    say(told);
  }

  frame.append(
    h("p", { class: "title" }, "The same questions again"),
    h("p", { class: "note" }, "You have the numbers now."),
    ...asked.map((one) => one.element),
    row,
  );
  return end;
}

export default { render };
