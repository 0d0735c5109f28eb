// What the browser remembers of a learner: points, answers, the review queue, the streak. One JSON document in
// localStorage, the same for JupyterLab and the site; nothing leaves the browser unless the learner exports it.
//
// Every change reads the document afresh, so that two open tabs do not undo each other. Missed questions come back on
// later days by FSRS (npm ts-fsrs): after 1 day, and when then answered rightly after 3, 8, 22 days more. It is given
// noon of the learner's calendar day for the time, so that an hour around midnight is a day, as for the streak.

import { createEmptyCard, fsrs, Rating } from "ts-fsrs";
import { daysBetween, localDay, REST_DAYS, streakLength } from "./days.js";
import { emptyDocument, VERSION, whatIsWrong } from "./progress_file.js";

export const KEY = "llm-course.progress";
export const CHANGED = "llm-course:progress"; // event on window after each change
const scheduler = fsrs({ enable_fuzz: false, enable_short_term: false });

/** Stands in for localStorage where the browser forbids it: everything works, nothing is remembered. */
function forgetful() {
  const values = new Map();
  return {
    getItem: (key) => values.get(key) ?? null,
    setItem: (key, value) => values.set(key, value),
    removeItem: (key) => values.delete(key),
  };
}

export function browserStorage() {
  try {
    globalThis.localStorage.setItem(`${KEY}:try`, "1");
    globalThis.localStorage.removeItem(`${KEY}:try`);
    return globalThis.localStorage;
  } catch {
    return forgetful();
  }
}

export class Store {
  /** `now()` gives the current Date; tests pass their own. */
  constructor(storage = browserStorage(), now = () => new Date()) {
    this.storage = storage;
    this.now = now;
  }

  /** The whole document, a copy. One that cannot be read is laid aside, never overwritten. */
  read() {
    const text = this.storage.getItem(KEY);
    if (text === null) return emptyDocument();
    try {
      const document = JSON.parse(text);
      if (whatIsWrong(document) === null) return document;
    } catch {
      // Told below: not JSON is as unreadable as a wrong shape.
    }
    this.storage.setItem(`${KEY}:unreadable`, text);
    this.storage.removeItem(KEY);
    return emptyDocument();
  }

  write(document) {
    try {
      this.storage.setItem(KEY, JSON.stringify(document));
    } catch {
      return false; // full, or forbidden since: the page goes on without remembering
    }
    globalThis.window?.dispatchEvent(new CustomEvent(CHANGED));
    return true;
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

  // --- review

  #noon() {
    return new Date(`${localDay(this.now())}T12:00:00Z`);
  }

  #miss(document, id, item) {
    const noon = this.#noon();
    const card = document.review[id]?.card ?? createEmptyCard(noon);
    document.review[id] = { ...item, card: plain(scheduler.next(card, noon, Rating.Again).card) };
  }

  /** What is due by the end of this local day, the longest due first: [{id, kind, ...}]. */
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

  /** {source, tries, passed}, any of them. */
  keepProgram(exercise, part) {
    this.change((document) => {
      const before = document.code[exercise] ?? { source: "", tries: 0, passed: false };
      document.code[exercise] = { ...before, ...part };
    }, part.tries !== undefined);
  }

  // --- streak

  setStreak(on) {
    this.change((document) => {
      document.streak.on = on;
      if (!on) document.streak.days = []; // who does not want to be counted is not
    });
  }

  /** {on, length, studiedToday, restDays}. */
  streak() {
    const { on, days } = this.read().streak;
    const today = localDay(this.now());
    return { on, length: streakLength(days, today), studiedToday: days.includes(today), restDays: REST_DAYS };
  }

  // --- export and import

  export() {
    return `${JSON.stringify({ ...this.read(), exported: localDay(this.now()) }, null, 1)}\n`;
  }

  /** Takes the place of everything here, or changes nothing: {ok: true} or {ok: false, why}. */
  import(text) {
    let document;
    try {
      document = JSON.parse(text);
    } catch (error) {
      return { ok: false, why: `This is no progress file: it is not JSON (${error.message}).` };
    }
    const why = whatIsWrong(document);
    if (why !== null) return { ok: false, why };
    delete document.exported;
    if (!this.write({ ...document, version: VERSION })) {
      return { ok: false, why: "The browser refused to store it: its storage is full or switched off." };
    }
    return { ok: true };
  }

  clear() {
    this.storage.removeItem(KEY);
    globalThis.window?.dispatchEvent(new CustomEvent(CHANGED));
  }
}

const plain = (card) => JSON.parse(JSON.stringify(card)); // dates as ISO text, as they are stored

let shared;
/** The store of this page; its clock is the page's own. */
export const store = () => (shared ??= new Store());

/** For widgets: see Store.recordPrediction. */
export const recordPrediction = (prediction) => store().recordPrediction(prediction);
