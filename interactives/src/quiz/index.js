// The quiz of a lesson: all questions, one check, every option explained. A retry draws new numbers; what was missed
// comes back on later days. `data`: interactives/quiz.py's JSON.

import { variantIndex } from "../shared/answers.js";
import { ask } from "../shared/asking.js";
import { h } from "../shared/dom.js";
import { makeFrame } from "../shared/frame.js";
import { store } from "../shared/store.js";

const plural = (n, one) => `${n} ${one}${n === 1 ? "" : "s"}`;

function history({ lesson, questions }) {
  const { tries, best, passed } = store().quiz(lesson);
  if (tries === 0) return null;
  const state = passed ? "Passed" : "Not passed yet";
  return h(
    "p",
    { class: "note" },
    `${state}: best ${best} of ${questions.length} in ${tries} ${tries === 1 ? "try" : "tries"}.`,
  );
}

function render({ model, el }) {
  const quiz = model.get("data");
  const { frame, say, end } = makeFrame(el, `Quiz: ${quiz.title}`, "quiz");
  const total = quiz.questions.length;

  function start(focus) {
    const attempt = store().quiz(quiz.lesson).tries;
    const asked = quiz.questions.map((question, index) =>
      ask(question, question.variants[variantIndex(question, attempt, quiz.lesson)], {
        label: `${index + 1}.`,
        seed: `${quiz.lesson}/${question.id}/${attempt}`,
        say,
      }),
    );
    const check = h("button", { type: "button", class: "main", click: () => finish(asked, check) }, "Check my answers");
    frame.replaceChildren(
      h("p", { class: "title" }, "Lesson quiz"),
      h(
        "p",
        { class: "note" },
        `${total} questions · pass with ${quiz.pass} · ${quiz.xp} XP. Numbers may be rounded; they change at each try.`,
      ),
      history(quiz) ?? "",
      ...asked.map((one) => one.element),
      h("div", { class: "row" }, check),
    );
    if (focus) asked[0].focus();
  }

  function finish(asked, check) {
    const answers = asked.map((one) => one.read());
    const missing = answers.findIndex((answer) => answer.why !== undefined);
    if (missing >= 0) {
      asked[missing].focus();
      say(`Question ${missing + 1}: ${answers[missing].why}`);
      return;
    }
    const missed = [];
    let right = 0;
    asked.forEach((one, index) => {
      if (one.reveal(answers[index].answer).right) right += 1;
      else missed.push(quiz.questions[index].id);
    });
    const earned = store().recordQuiz(quiz.lesson, { right, missed, pass: quiz.pass, xp: quiz.xp });
    const passed = right >= quiz.pass;
    const points = earned ? ` ${earned} XP earned.` : "";
    const back = missed.length
      ? ` ${plural(missed.length, "question")} will come back in today's review, from tomorrow on.`
      : "";
    const told = `${right} of ${total} right: ${passed ? "passed." : `not passed, ${quiz.pass} are needed.`}${points}${back}`;
    const result = h("p", { class: "result", tabindex: "-1" }, told);
    check.parentElement.replaceWith(
      result,
      h(
        "div",
        { class: "row" },
        h("button", { type: "button", class: "main", click: () => start(true) }, "Try again with new numbers"),
      ),
    );
    frame.querySelector(".title").after(result);
    result.focus();
    say(told);
  }

  start(false);
  return end;
}

export default { render };
