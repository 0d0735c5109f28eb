// Everything that the browser remembers of a learner: points, answers, programs, the review queue, the streak. One JSON document in
// localStorage, for quizzes, predictions, figures and practice alike; nothing leaves the browser unless it is exported.
// Where the browser cannot store it, it stays in the page's memory and the learner is told once.
//
// Every change reads the document afresh, so that two open tabs do not undo each other. Missed questions come back on
// later days by FSRS (npm ts-fsrs): after 1 day, and when then answered rightly after 3, 8, 22 days more. It is given
// noon of the learner's calendar day for the time, so that an hour around midnight is a day, as for the streak.

import { createEmptyCard, fsrs, Rating } from "ts-fsrs";
import { daysBetween, localDay, REST_DAYS, streakLength } from "./days.js";
import { tellOnce } from "./notice.js";
import { emptyDocument, LONGEST_ANSWER, LONGEST_PROGRAM, mend, upgrade, whatIsWrong } from "./progress_file.js";

export const KEY = "llm-course.progress";
export const CHANGED = "llm-course:progress"; // event on window after each change
const scheduler = fsrs({ enable_fuzz: false, enable_short_term: false });

const UNREADABLE = `${KEY}:unreadable`; // a document that could not be read as it was
const ASKED = "llm-course.asked"; // where the figures kept their answers before version 2
const GPU = "llm-course.gpu"; // gpu.js writes it

const FULL = "This browser's storage is full: your progress cannot be saved here. Export it on the progress page.";
const DENIED = "This browser stores nothing for this page: your answers are kept only until you leave it.";

/** localStorage, or null where the browser forbids it. */
export function browserStorage() {
  try {
    return globalThis.localStorage ?? null;
  } catch {
    return null;
  }
}

/** A short name for a text of any length (FNV-1a, 32 bits). */
export function shortName(text) {
  let hash = 0x811c9dc5;
  for (const letter of text) hash = Math.imul(hash ^ letter.codePointAt(0), 0x01000193);
  return (hash >>> 0).toString(36);
}

const byText = (text) => `text:${shortName(text)}`;

function parse(text) {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

export class Store {
  /**
   * `storage`: localStorage or null; `now()`: the current Date; `tell(text)`: speaks to the learner;
   * `memory`: holds what `storage` does not take, as {text}. Tests pass their own.
   */
  constructor(storage = browserStorage(), now = () => new Date(), { tell = tellOnce, memory = {} } = {}) {
    this.storage = storage;
    this.now = now;
    this.tell = tell;
    this.memory = memory;
  }

  /** Does the browser keep what is written? */
  get keeps() {
    return this.storage !== null && this.memory.text === undefined;
  }

  #kept(key) {
    return this.storage?.getItem(key) ?? null;
  }

  /** The whole document, a copy. */
  read() {
    const text = this.memory.text ?? this.#kept(KEY);
    const document = text === null ? this.#recovered() : this.#readable(text);
    return this.#withOldAnswers(document);
  }

  /** A document as it was, or what is good of it; then the text itself is laid aside, never overwritten. */
  #readable(text) {
    const document = upgrade(parse(text));
    if (whatIsWrong(document) === null) return document;
    this.#put(UNREADABLE, text);
    const mended = mend(document);
    if (mended !== null) return mended;
    this.storage?.removeItem(KEY);
    return emptyDocument();
  }

  /** The good part of a document that an earlier page laid aside. */
  #recovered() {
    const aside = this.#kept(UNREADABLE);
    return (aside !== null && mend(parse(aside))) || emptyDocument();
  }

  /** Answers of figures that were kept apart, {question text: guess}, join the document at its next change. */
  #withOldAnswers(document) {
    const old = parse(this.#kept(ASKED) ?? "");
    if (typeof old !== "object" || old === null) return document;
    const answers = Object.entries(old).map(([text, guess]) => [byText(text), { guess }]);
    const all = { ...document, figures: { ...Object.fromEntries(answers), ...document.figures } };
    return whatIsWrong(all) === null ? all : document;
  }

  #put(key, text) {
    try {
      this.storage.setItem(key, text);
      return true;
    } catch {
      return false;
    }
  }

  /** Store a document; false where the browser does not take it, which the learner is told. */
  write(document) {
    const why = whatIsWrong(document);
    if (why !== null) {
      this.tell(`This could not be saved. ${why}`);
      return false;
    }
    const text = JSON.stringify(document);
    if (this.#put(KEY, text)) {
      delete this.memory.text;
      this.storage.removeItem(ASKED);
    } else {
      this.memory.text = text;
      this.tell(this.storage === null ? DENIED : FULL);
    }
    globalThis.window?.dispatchEvent(new CustomEvent(CHANGED));
    return this.memory.text === undefined;
  }

  change(edit, studied = false) {
    const document = this.read();
    const result = edit(document);
    if (studied && document.streak.on) {
      const today = localDay(this.now());
      if (!document.streak.days.includes(today)) document.streak.days = [...document.streak.days, today].sort();
    }
    this.write(document);
    return result;
  }

  // --- points

  /** Points for something done, once: the second time it earns 0. Returns what was earned. */
  award(key, points) {
    return this.change((document) => {
      if (document.xp[key] !== undefined) return 0;
      document.xp[key] = points;
      return points;
    }, true);
  }

  points() {
    return Object.values(this.read().xp).reduce((sum, points) => sum + points, 0);
  }

  // --- quizzes

  /** The first answers to a lesson's opening questions, {questionId: answer}; a second commitment changes nothing. */
  keepOpening(lesson, answers) {
    this.change((document) => {
      document.opening[lesson] ??= answers;
    }, true);
  }

  opening(lesson) {
    return this.read().opening[lesson] ?? null;
  }

  quiz(lesson) {
    return this.read().quizzes[lesson] ?? { tries: 0, best: 0, passed: false };
  }

  /** One try at a lesson's quiz. `missed`: ids of the questions, which come back. Returns the points earned. */
  recordQuiz(lesson, { right, missed, pass, xp }) {
    const passed = right >= pass;
    this.change((document) => {
      const before = document.quizzes[lesson] ?? { tries: 0, best: 0, passed: false };
      document.quizzes[lesson] = {
        tries: before.tries + 1,
        best: Math.max(before.best, right),
        passed: before.passed || passed,
      };
      for (const id of missed) this.#miss(document, `quiz/${lesson}/${id}`, { kind: "quiz", lesson, question: id });
    }, true);
    return passed ? this.award(`quiz/${lesson}`, xp) : 0;
  }

  /** Questions of a lesson that were answered wrongly outside its quiz. */
  missed(lesson, ids) {
    this.change((document) => {
      for (const id of ids) this.#miss(document, `quiz/${lesson}/${id}`, { kind: "quiz", lesson, question: id });
    }, true);
  }

  // --- answers to questions that a person grades

  written(name) {
    return this.read().written[name] ?? "";
  }

  keepWritten(name, text) {
    this.change((document) => {
      document.written[name] = text.slice(0, LONGEST_ANSWER);
    }, true);
  }

  // --- predictions

  /**
   * A committed prediction. The first guess is the one that stays; a wrong one returns in the review.
   * {key, question, answer, unit, guess, correct, explain, tolerance}: texts are plain; guess and answer are both numbers or both texts.
   */
  recordPrediction({ key, question, answer, unit = "", guess, correct, explain = "", tolerance = 0.05 }) {
    this.change((document) => {
      if (document.predictions[key] !== undefined) return;
      document.predictions[key] = { guess, correct };
      if (correct) return;
      const prediction = { question, answer, unit, explain, tolerance };
      this.#miss(document, `prediction/${key}`, { kind: "prediction", prediction });
    }, true);
  }

  prediction(key) {
    return this.read().predictions[key] ?? null;
  }

  // --- questions of the figures

  /** The answer to a figure's question: {guess}, guess null where it was shown without one; null if not asked yet. */
  figureAnswer(id, text) {
    const { figures } = this.read();
    return figures[id] ?? figures[byText(text)] ?? null;
  }

  keepFigureAnswer(id, guess) {
    this.change((document) => {
      document.figures[id] = { guess };
    }, guess !== null);
  }

  forgetFigureAnswer(id, text) {
    this.change((document) => {
      delete document.figures[id];
      delete document.figures[byText(text)];
    });
  }

  // --- review

  #noon() {
    return new Date(`${localDay(this.now())}T12:00:00Z`);
  }

  #miss(document, id, item) {
    const noon = this.#noon();
    const card = document.review[id]?.card ?? createEmptyCard(noon);
    document.review[id] = { ...item, card: plain(scheduler.next(card, noon, Rating.Again).card) };
  }

  /** The items due by the end of this local day, the longest due first: [{id, kind, ...}]. */
  due() {
    const today = localDay(this.now());
    return Object.entries(this.read().review)
      .map(([id, item]) => ({ id, ...item }))
      .filter((item) => daysBetween(item.card.due.slice(0, 10), today) >= 0)
      .sort((one, other) => Date.parse(one.card.due) - Date.parse(other.card.due) || one.id.localeCompare(other.id));
  }

  /** Days until the next item is due: 0 if one is, null if there is none. */
  daysUntilDue() {
    const today = localDay(this.now());
    const days = Object.values(this.read().review).map((item) => daysBetween(today, item.card.due.slice(0, 10)));
    return days.length ? Math.max(0, Math.min(...days)) : null;
  }

  /** Reschedules an item; returns in how many days it comes back. */
  answerReview(id, correct) {
    return this.change((document) => {
      const item = document.review[id];
      if (!item) return null;
      const next = scheduler.next(item.card, this.#noon(), correct ? Rating.Good : Rating.Again).card;
      item.card = plain(next);
      return next.scheduled_days;
    }, true);
  }

  // --- practice programs

  program(exercise) {
    return this.read().code[exercise] ?? null;
  }

  /** Keep {source, tries, passed}, any of them. A source that is too long is not kept, and the learner is told. */
  keepProgram(exercise, { source, ...rest }) {
    const short = source === undefined || source.length <= LONGEST_PROGRAM;
    if (!short) {
      this.tell(
        `Your program has ${source.length.toLocaleString("en-US")} characters. It runs, but more than ` +
          `${LONGEST_PROGRAM.toLocaleString("en-US")} are not kept: your last shorter version is.`,
      );
    }
    const part = source === undefined || !short ? rest : { ...rest, source };
    if (Object.keys(part).length === 0) return;
    this.change((document) => {
      const before = document.code[exercise] ?? { source: "", tries: 0, passed: false };
      document.code[exercise] = { ...before, ...part };
    }, part.tries !== undefined);
  }

  // --- streak

  setStreak(on) {
    this.change((document) => {
      document.streak.on = on;
      if (!on) document.streak.days = [];
    });
  }

  /** {on, length, studiedToday, restDays}. */
  streak() {
    const { on, days } = this.read().streak;
    const today = localDay(this.now());
    return { on, length: streakLength(days, today), studiedToday: days.includes(today), restDays: REST_DAYS };
  }

  // --- export and import

  /** Everything that the browser remembers, as the text of a file. */
  export() {
    const gpu = this.#kept(GPU) ?? undefined;
    return `${JSON.stringify({ ...this.read(), gpu, exported: localDay(this.now()) }, null, 1)}\n`;
  }

  /** Read the text of an exported file without changing anything: {document, gpu}, or {why} where it is none. */
  readExport(text) {
    let found;
    try {
      found = upgrade(JSON.parse(text));
    } catch (error) {
      return { why: `This is no progress file: it is not JSON (${error.message}).` };
    }
    const why = whatIsWrong(found);
    if (why !== null) return { why };
    const { exported, gpu, ...document } = found;
    return { document, gpu };
  }

  /** Takes the place of everything here, or changes nothing: {ok: true} or {ok: false, why}. */
  import(text) {
    const { document, gpu, why } = this.readExport(text);
    if (why !== undefined) return { ok: false, why };
    const before = this.memory.text;
    if (!this.write(document) && this.storage !== null) {
      this.memory.text = before;
      return { ok: false, why: "The browser refused to store it: its storage is full." };
    }
    if (gpu !== undefined) this.#put(GPU, gpu);
    return { ok: true };
  }

  /** Forget everything, also what earlier versions kept elsewhere and what was laid aside. */
  clear() {
    delete this.memory.text;
    for (const key of [KEY, UNREADABLE, ASKED, GPU]) this.storage?.removeItem(key);
    globalThis.window?.dispatchEvent(new CustomEvent(CHANGED));
  }
}

const plain = (card) => JSON.parse(JSON.stringify(card)); // dates as ISO text, as they are stored

let shared;
const MEMORY = Symbol.for("llm-course.memory"); // each bundle has a copy of this module; they share the page's memory

/** The store of this page; its clock is the page's own. */
export function store() {
  globalThis[MEMORY] ??= {};
  shared ??= new Store(browserStorage(), undefined, { memory: globalThis[MEMORY] });
  return shared;
}

/** For widgets: see Store.recordPrediction. */
export const recordPrediction = (prediction) => store().recordPrediction(prediction);
