// Question before animation: the learner commits to an answer, then the figure shows. A wrong one becomes a review item.
import { esc, num } from "./format.js";
import { recordPrediction } from "./store.js";

const KEY = "llm-course.asked";

function given() {
  try {
    return JSON.parse(localStorage.getItem(KEY)) ?? {};
  } catch {
    return {};
  }
}

export const answerGiven = (question) => given()[question.text];

export function keepAnswer(question, guess) {
  const all = given();
  if (guess === undefined) delete all[question.text];
  else all[question.text] = guess;
  try {
    localStorage.setItem(KEY, JSON.stringify(all));
  } catch {
    // a browser that stores nothing asks again
  }
}

export const isRight = (question, guess) =>
  question.kind === "choice"
    ? question.options[guess]?.correct === true
    : Math.abs(guess - question.answer) <= Math.abs(question.answer) * (question.tolerance ?? 0.05) + 1e-9;

/** What is said after an answer: [right or wrong, HTML]. `guess` null: shown without guessing. */
export function verdict(question, guess) {
  const unit = question.unit ? ` ${question.unit}` : "";
  const key =
    question.kind === "choice"
      ? question.options.find((option) => option.correct).text
      : `${question.show ?? num(question.answer)}${unit}`;
  const stop = /[.!?]$/.test(key) ? "" : ".";
  if (guess === null) return `<strong>${esc(key)}</strong>${stop} ${esc(question.explain)}`;
  const right = isRight(question, guess);
  const said = question.kind === "choice" ? question.options[guess].text : `${num(guess, 4)}${unit}`;
  const why = question.kind === "choice" && !right ? question.options[guess].explain : "";
  const head = right
    ? `<span class="right">✓ Right:</span> <strong>${esc(key)}</strong>`
    : `<span class="wrong">✗ You said ${esc(said)}.</span> It is <strong>${esc(key)}</strong>`;
  return `${head}${stop} ${why ? `${esc(why)} ` : ""}${esc(question.explain)}`;
}

export function record(question, guess) {
  if (question.kind === "draw") {
    const { review, key, explain } = question;
    const point = question.point(guess);
    const correct = Math.abs(point - review.answer) <= review.tolerance * Math.abs(review.answer);
    recordPrediction({ key, ...review, guess: point, correct, explain });
    return;
  }
  const choice = question.kind === "choice";
  recordPrediction({
    key: question.key,
    question: question.text,
    answer: choice ? question.options.find((option) => option.correct).text : question.answer,
    unit: question.unit ?? "",
    guess: choice ? question.options[guess].text : guess,
    correct: isRight(question, guess),
    explain: question.explain,
    tolerance: question.tolerance ?? 0.05,
  });
}

/** The question as HTML. `kind` "number" has a box, "choice" options, "draw" is answered in the figure. */
export function askHtml(question, prefix) {
  const buttons = `<div class="row">${
    question.kind === "number"
      ? `<label class="unseen" for="${prefix}-guess">Your guess${question.unit ? ` in ${esc(question.unit)}` : ""}</label><input type="number" step="any" inputmode="decimal" id="${prefix}-guess" data-key="guess" aria-describedby="${prefix}-guess-fault">${question.unit ? `<span>${esc(question.unit)}</span>` : ""}`
      : ""
  }<button class="main" data-act="commit" data-key="commit">Commit</button><button class="plain" data-act="skip" data-key="skip">Show me</button></div><p class="fault" id="${prefix}-guess-fault" role="alert"></p>`;
  if (question.kind !== "choice") return `<p><strong>First guess.</strong> ${esc(question.text)}</p>${buttons}`;
  const options = question.options
    .map(
      (option, i) =>
        `<label class="option"><input type="radio" name="${prefix}-guess" value="${i}" data-key="option-${i}"><span>${esc(option.text)}</span></label>`,
    )
    .join("");
  return `<fieldset><legend><strong>First guess.</strong> ${esc(question.text)}</legend><div>${options}</div></fieldset>${buttons}`;
}
