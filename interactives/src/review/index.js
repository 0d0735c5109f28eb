// Today's review: what was missed earlier and is due by today's date, one question at a time, with new numbers.
// State: `quizzes`, the address of all quizzes as JSON, {lesson: quiz}, or `data`, that JSON itself.

import { shownNumber, variantIndex } from "../shared/answers.js";
import { ask } from "../shared/asking.js";
import { h } from "../shared/dom.js";
import { makeFrame } from "../shared/frame.js";
import { store } from "../shared/store.js";

const days = (n) => (n === 1 ? "tomorrow" : `in ${n} days`);

/** The question of a due item: {question, variant, from}, or null where the course no longer has it. */
function questionOf(item, quizzes) {
  if (item.kind === "prediction") {
    const { question, answer, unit, explain, tolerance } = item.prediction;
    const text = typeof answer === "string";
    const variant = {
      prompt: [question],
      answer,
      shown: text ? answer : shownNumber(Number(answer.toPrecision(4))),
      unit,
      tolerance,
      mistakes: [],
      explain: [explain],
    };
    return {
      question: { id: item.id, kind: text ? "recall" : "numeric", variants: [variant] },
      variant,
      from: "a prediction",
    };
  }
  const quiz = quizzes[item.lesson];
  const question = quiz && [...quiz.questions, ...quiz.opening].find((one) => one.id === item.question);
  if (!question) return null;
  const attempt = item.card.reps + 1;
  return {
    question,
    variant: question.variants[variantIndex(question, attempt, item.lesson)],
    from: quiz.title,
    seed: `${item.id}/${attempt}`,
  };
}

/** The words for when nothing more is due. */
function finishedWords(answered) {
  const next = store().daysUntilDue();
  const done = answered ? `Done for today: ${answered} answered.` : "Nothing is due today.";
  const none = "Questions you miss in a quiz and predictions that were wrong come back here, from the next day on.";
  return `${done} ${next === null ? none : `The next question comes back ${days(next)}.`}`;
}

/** A question that the learner answers in the head, and judges after seeing the answer. */
function recall(variant, { frame, row, say, done, focus }) {
  const box = h("div", { class: "question" }, h("p", {}, h("strong", {}, variant.prompt)));
  const show = h("button", { type: "button", class: "main" }, "Show the answer");
  show.addEventListener("click", () => {
    box.append(
      h("div", { class: "feedback" }, h("p", {}, h("strong", {}, variant.shown)), h("p", {}, variant.explain)),
    );
    const knew = h("button", { type: "button", class: "main", click: () => done(true) }, "I knew it");
    row.replaceChildren(knew, h("button", { type: "button", click: () => done(false) }, "I did not"));
    knew.focus();
    say(variant.shown);
  });
  row.append(show);
  frame.append(box, row);
  if (focus) show.focus();
}

function render({ model, el }) {
  const { frame, say, end } = makeFrame(el, "Today's review", "review");
  let answered = 0;

  function finished(focus) {
    const told = finishedWords(answered);
    const note = h("p", { tabindex: "-1" }, told);
    frame.replaceChildren(h("p", { class: "title" }, "Today's review"), note);
    if (focus) {
      note.focus();
      say(told);
    }
  }

  function next(quizzes, focus) {
    const due = store()
      .due()
      .filter((item) => questionOf(item, quizzes));
    if (due.length === 0) return finished(focus);
    const item = due[0];
    const { question, variant, from, seed = item.id } = questionOf(item, quizzes);
    const left = `${due.length} ${due.length === 1 ? "question" : "questions"} due · from ${from}`;
    const row = h("div", { class: "row" });
    frame.replaceChildren(h("p", { class: "title" }, "Today's review"), h("p", { class: "note" }, left));

    const done = (right) => {
      answered += 1;
      const gap = store().answerReview(item.id, right);
      const told = `${right ? "Right" : "Not yet"}. It comes back ${days(gap)}.`;
      const button = h(
        "button",
        { type: "button", class: "main", click: () => next(quizzes, true) },
        due.length > 1 ? "Next question" : "Finish",
      );
      row.replaceChildren(h("span", {}, told), button);
      button.focus();
      say(told);
    };

    if (question.kind === "recall") {
      recall(variant, { frame, row, say, done, focus });
      return;
    }
    const one = ask(question, variant, { label: "", seed, say });
    const check = h("button", { type: "button", class: "main" }, "Check");
    const decide = () => {
      const { answer, why } = one.read();
      if (why !== undefined) return one.focus();
      done(one.reveal(answer).right);
    };
    check.addEventListener("click", decide);
    one.element.addEventListener("keydown", (event) => {
      if (event.key === "Enter" && event.target.matches("input") && !one.element.disabled) decide();
    });
    row.append(check);
    frame.append(one.element, row);
    if (focus) one.focus();
  }

  const data = model.get("data");
  if (data) next(data, false);
  else {
    frame.append(h("p", { class: "title" }, "Today's review"), h("p", { class: "note" }, "Loading …"));
    fetch(new URL(model.get("quizzes"), document.baseURI))
      .then((answer) => (answer.ok ? answer.json() : Promise.reject(new Error(String(answer.status)))))
      .then((quizzes) => next(quizzes, false))
      .catch(() =>
        frame.replaceChildren(h("p", {}, "The questions could not be loaded. Reload the page to try again.")),
      );
  }
  return end;
}

export default { render };
