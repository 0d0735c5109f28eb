// The question before a figure: the learner commits to an answer, then the figure shows. It is asked, read and judged as
// a quiz's question is, and its answer lies in the same progress document. A wrong one comes back in the review.
//
// A figure's question: {key, kind, text, explain}, and by kind
//   number  answer, unit, show (the answer in words), tolerance
//   choice  options [{text, correct, explain}]; several may be right
//   draw    answered in the figure: read(state, env), point(guess), review, verdict(guess)
import { judge, shownNumber } from "./answers.js";
import { ask } from "./asking.js";
import { h } from "./dom.js";
import { esc, num } from "./format.js";
import { recordPrediction, shortName, store } from "./store.js";

const TOLERANCE = 0.05;

/** Name of a question in the progress document; figures that start from other settings ask another question. */
export function questionName(key, start, defaults) {
  const given = Object.entries(start).filter(
    ([name, value]) => !["gpu", "ask"].includes(name) && JSON.stringify(value) !== JSON.stringify(defaults[name]),
  );
  return given.length ? `${key}/${shortName(JSON.stringify(given))}` : key;
}

/** The question as asking.js and answers.js take it. */
function asQuiz(question) {
  if (question.kind === "number") {
    const { text, unit = "", answer, show = num(answer), tolerance = TOLERANCE, explain } = question;
    const variant = { prompt: [text], answer, shown: show, unit, tolerance, mistakes: [], explain: [explain] };
    return { kind: "numeric", variant };
  }
  const options = question.options.map(({ text, correct, explain }) => ({
    text: [text],
    correct: Boolean(correct),
    mistake: null,
    explain: [explain],
  }));
  return { kind: "choice", variant: { prompt: [question.text], options, explain: [question.explain] } };
}

export function isRight(question, guess) {
  const { kind, variant } = asQuiz(question);
  return judge(kind, variant, guess).right;
}

/** The answer in words; where several options are right, all of them. */
function keyOf(question) {
  if (question.kind === "number") return `${question.show ?? num(question.answer)}${unitOf(question)}`;
  return question.options
    .filter((option) => option.correct)
    .map((option) => option.text)
    .join("; ");
}

const unitOf = ({ unit }) => (unit === "%" ? "\u202f%" : unit ? ` ${unit}` : "");
const stopped = (text) => (/[.!?]$/.test(text) ? text : `${text}.`);

/** HTML that says whether a guess was right, the answer, and why. `guess` null: shown without one. */
export function verdict(question, guess) {
  const key = `<strong>${esc(stopped(keyOf(question)))}</strong>`;
  if (guess === null) return `${key} ${esc(question.explain)}`;
  const right = isRight(question, guess);
  const chosen = question.kind === "choice" ? question.options[guess] : null;
  const said = chosen ? chosen.text : `${shownNumber(guess)}${unitOf(question)}`;
  const why = chosen && !right ? `${esc(chosen.explain)} ` : "";
  const head = right
    ? '<span class="right">✓ Right:</span>'
    : `<span class="wrong">✗ You said: ${esc(stopped(said))}</span> The answer:`;
  return `${head} ${key} ${why}${esc(question.explain)}`;
}

/** Hand a guess to the review queue, as a prediction of the course. */
function record(name, question, guess) {
  if (question.kind === "draw") {
    const { review, explain } = question;
    const point = question.point(guess);
    const correct = Math.abs(point - review.answer) <= review.tolerance * Math.abs(review.answer);
    recordPrediction({ key: name, ...review, guess: point, correct, explain });
    return;
  }
  const choice = question.kind === "choice";
  recordPrediction({
    key: name,
    question: question.text,
    answer: choice ? keyOf(question) : question.answer,
    unit: question.unit ?? "",
    guess: choice ? question.options[guess].text : guess,
    correct: isRight(question, guess),
    explain: question.explain,
    tolerance: question.tolerance ?? TOLERANCE,
  });
}

/**
 * The box above a figure with its question, and what was answered.
 *
 * `question(env)`: the question for the start state, or null; `name`: questionName's; `env()`: the explorer's;
 * `readDrawing()`: the guess drawn in the figure; `linked`: the page's address shows a state, so nothing is locked;
 * `say`: speaks in the live region; `answered(guess)` is told of each answer, `guess` null where there was none.
 */
export class FirstQuestion {
  constructor(box, { question, name, env, readDrawing, linked, say, answered }) {
    Object.assign(this, { box, name, env, readDrawing, say, answered, make: question });
    this.question = question(env());
    this.guess = undefined; // not answered yet; null: shown without a guess
    const kept = this.question && store().figureAnswer(name, this.question.text);
    if (kept) this.guess = this.#stillMeant(kept);
    else if (linked) this.guess = null;
  }

  get open() {
    return this.question !== null && this.guess === undefined;
  }

  /** A guess for another GPU had another answer: it unlocks the figure and is not judged. A drawing is kept. */
  #stillMeant({ guess, gpu }) {
    const other = gpu !== undefined && gpu !== this.env().gpuKey;
    return other && this.question.kind !== "draw" ? null : guess;
  }

  /** The GPU has changed, and with it the answer. */
  gpuChanged() {
    if (this.question && this.guess !== undefined && this.question.kind !== "draw") this.guess = null;
    this.draw();
  }

  forget() {
    if (this.question) store().forgetFigureAnswer(this.name, this.question.text);
    this.guess = undefined;
    this.draw();
  }

  draw() {
    this.question = this.make(this.env());
    this.box.hidden = this.question === null;
    if (this.question === null) return;
    if (this.open) this.#ask();
    else this.#tell();
  }

  #ask() {
    const { question, box } = this;
    const buttons = h(
      "div",
      { class: "row" },
      h("button", { class: "main", "data-key": "commit", click: () => this.#commit() }, "Commit"),
      h("button", { class: "plain", "data-key": "skip", click: () => this.#answer(null) }, "Show me"),
    );
    if (question.kind === "draw") {
      this.one = null;
      box.replaceChildren(h("p", {}, h("strong", {}, "First guess. "), question.text), buttons);
      return;
    }
    const { kind, variant } = asQuiz(question);
    this.one = ask({ id: this.name, kind }, variant, { label: "First guess.", seed: this.name, say: this.say });
    this.one.element.addEventListener("keydown", (event) => {
      if (event.key === "Enter" && event.target.matches("input")) this.#commit();
    });
    box.replaceChildren(this.one.element, buttons);
  }

  #tell() {
    const { question, guess } = this;
    const said = question.kind === "draw" ? question.verdict(guess) : verdict(question, guess);
    this.box.innerHTML = `<p class="note">${esc(question.text)}</p><p tabindex="-1" data-key="verdict">${said}</p>`;
  }

  #commit() {
    if (this.one === null) return this.#answer(this.readDrawing(this.question));
    const { answer, why } = this.one.read();
    if (why === undefined) this.#answer(answer);
    else this.one.focus();
  }

  #answer(guess) {
    this.guess = guess;
    store().keepFigureAnswer(this.name, guess, this.env().gpuKey);
    if (guess !== null) record(this.name, this.question, guess);
    this.#tell();
    this.answered(guess);
    this.box.querySelector("[data-key=verdict]")?.focus();
  }
}
