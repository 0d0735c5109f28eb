// The progress store, run by `node --test` from test_store.py. TZ is set per test: Node reads it at each change.

import assert from "node:assert/strict";
import { test } from "node:test";
import { daysBetween, localDay, streakLength } from "../../interactives/src/shared/days.js";
import { KEY, Store } from "../../interactives/src/shared/store.js";

class Storage {
  values = new Map();
  getItem = (key) => this.values.get(key) ?? null;
  setItem = (key, value) => this.values.set(key, value);
  removeItem = (key) => this.values.delete(key);
}

function at(moment, storage = new Storage()) {
  const clock = { now: new Date(moment) };
  const store = new Store(storage, () => clock.now);
  return { store, clock, storage };
}

const PREDICTION = {
  key: "01-step-ms",
  question: "How long is a step?",
  answer: 4.794,
  unit: "ms",
  guess: 48,
  correct: false,
  explain: "Bytes over bytes a second.",
};

for (const zone of ["Etc/GMT+8", "Etc/GMT-9", "Etc/GMT-14", "UTC"]) {
  test(`23:30 and 00:30 are two days of a streak in ${zone}`, () => {
    process.env.TZ = zone;
    const { store, clock } = at("2026-06-10T12:00:00Z");
    store.setStreak(true);
    clock.now = new Date(2026, 5, 10, 23, 30);
    store.award("quiz/01", 50);
    assert.deepEqual(store.streak(), { on: true, length: 1, studiedToday: true, restDays: 2 });
    clock.now = new Date(2026, 5, 11, 0, 30);
    assert.equal(store.streak().studiedToday, false);
    assert.equal(store.streak().length, 1); // today is not over
    store.award("quiz/02", 50);
    assert.equal(store.streak().length, 2);
    assert.deepEqual(store.read().streak.days, ["2026-06-10", "2026-06-11"]);
  });
}

for (const [zone, spring, autumn] of [
  ["America/Los_Angeles", "2026-03-08", "2026-11-01"],
  ["Europe/Berlin", "2026-03-29", "2026-10-25"],
]) {
  for (const change of [spring, autumn]) {
    test(`the clock change of ${change} in ${zone} neither adds nor loses a day`, () => {
      process.env.TZ = zone;
      const [year, month, day] = change.split("-").map(Number);
      const { store, clock } = at("2026-01-01T00:00:00Z");
      store.setStreak(true);
      for (const offset of [-1, 0, 1]) {
        clock.now = new Date(year, month - 1, day + offset, 23, 30);
        store.award(`quiz/${offset}`, 50);
      }
      assert.equal(store.streak().length, 3);
      assert.equal(
        daysBetween(
          localDay(new Date(year, month - 1, day, 0, 30)),
          localDay(new Date(year, month - 1, day + 1, 0, 30)),
        ),
        1,
      );
    });
  }
}

test("two rest days are forgiven, a third ends the streak", () => {
  assert.equal(streakLength(["2026-06-05", "2026-06-08"], "2026-06-08"), 2); // Friday, Monday
  assert.equal(streakLength(["2026-06-05", "2026-06-09"], "2026-06-09"), 1);
  assert.equal(streakLength(["2026-06-05"], "2026-06-08"), 1); // still alive on Monday
  assert.equal(streakLength(["2026-06-05"], "2026-06-09"), 0);
  assert.equal(streakLength([], "2026-06-09"), 0);
});

test("the streak is off until asked for, and switching it off forgets the days", () => {
  const { store } = at("2026-06-10T12:00:00Z");
  store.award("quiz/01", 50);
  assert.deepEqual(store.read().streak, { on: false, days: [] });
  store.setStreak(true);
  store.award("quiz/02", 50);
  assert.equal(store.read().streak.days.length, 1);
  store.setStreak(false);
  assert.deepEqual(store.read().streak, { on: false, days: [] });
});

test("points are earned once for each thing", () => {
  const { store } = at("2026-06-10T12:00:00Z");
  assert.equal(store.award("practice/01", 20), 20);
  assert.equal(store.award("practice/01", 20), 0);
  assert.equal(store.recordQuiz("01", { right: 5, missed: ["a", "b"], pass: 5, xp: 50 }), 50);
  assert.equal(store.recordQuiz("01", { right: 7, missed: [], pass: 5, xp: 50 }), 0);
  assert.equal(store.points(), 70);
  assert.deepEqual(store.quiz("01"), { tries: 2, best: 7, passed: true });
});

test("four of seven earn nothing and do not pass", () => {
  const { store } = at("2026-06-10T12:00:00Z");
  assert.equal(store.recordQuiz("01", { right: 4, missed: ["a", "b", "c"], pass: 5, xp: 50 }), 0);
  assert.deepEqual(store.quiz("01"), { tries: 1, best: 4, passed: false });
});

test("a missed question returns after 1 day, then after 3, 8 and 22 when answered rightly", () => {
  process.env.TZ = "Etc/GMT+8";
  const { store, clock } = at("2026-06-10T12:00:00Z");
  clock.now = new Date(2026, 5, 10, 23, 30);
  store.recordQuiz("01", { right: 6, missed: ["bound"], pass: 5, xp: 50 });
  assert.deepEqual(store.due(), []);
  assert.equal(store.daysUntilDue(), 1);
  clock.now = new Date(2026, 5, 11, 0, 30); // an hour later, but tomorrow
  const [item] = store.due();
  assert.deepEqual([item.id, item.kind, item.lesson, item.question], ["quiz/01/bound", "quiz", "01", "bound"]);
  const gaps = [];
  for (let round = 0; round < 3; round += 1) {
    gaps.push(store.answerReview("quiz/01/bound", true));
    assert.deepEqual(store.due(), []);
    clock.now = new Date(clock.now.getTime() + gaps.at(-1) * 86_400_000);
    assert.equal(store.due().length, 1);
  }
  assert.deepEqual(gaps, [3, 8, 22]);
  assert.equal(store.answerReview("quiz/01/bound", false) < 22, true);
});

test("a wrong prediction becomes a review item, a right one does not, and the first guess stays", () => {
  const { store, clock } = at("2026-06-10T12:00:00Z");
  store.recordPrediction(PREDICTION);
  store.recordPrediction({ ...PREDICTION, guess: 4.8, correct: true });
  store.recordPrediction({ ...PREDICTION, key: "other", guess: 4.8, correct: true });
  assert.deepEqual(store.prediction("01-step-ms"), { guess: 48, correct: false });
  assert.deepEqual(store.due(), []);
  clock.now = new Date("2026-06-12T12:00:00Z");
  assert.deepEqual(
    store.due().map((item) => [item.id, item.prediction.answer, item.prediction.tolerance]),
    [["prediction/01-step-ms", 4.794, 0.05]],
  );
});

test("exported progress, cleared and imported, is what it was", () => {
  const { store, storage } = at("2026-06-10T12:00:00Z");
  store.setStreak(true);
  store.recordQuiz("01", { right: 5, missed: ["a", "b"], pass: 5, xp: 50 });
  store.recordPrediction(PREDICTION);
  store.keepOpening("01", { first: { variant: 0, answer: 209 }, second: { variant: 1, answer: [2, 0, 1] } });
  store.keepProgram("01_groupwise_int8", { source: "print('ü')\n", tries: 3, passed: true });
  const before = storage.getItem(KEY);
  const file = store.export();
  store.clear();
  assert.equal(store.points(), 0);
  assert.deepEqual(store.import(file), { ok: true });
  assert.deepEqual(JSON.parse(storage.getItem(KEY)), JSON.parse(before));
});

const FULL = (() => {
  const { store } = at("2026-06-10T12:00:00Z");
  store.setStreak(true);
  store.recordQuiz("01", { right: 5, missed: ["a"], pass: 5, xp: 50 });
  return store.export();
})();
const altered = (edit) => {
  const document = JSON.parse(FULL);
  edit(document);
  return JSON.stringify(document);
};

for (const [name, file, why] of [
  ["half a file", FULL.slice(0, FULL.length / 2), /not JSON/],
  ["an empty file", "", /not JSON/],
  ["another program's file", '{"cards": []}', /no progress file of this course/],
  ["a later version", altered((d) => (d.version = 4)), /of version 4, this page knows 3/],
  ["a missing section", altered((d) => delete d.review), /"review" is missing/],
  ["points that are text", altered((d) => (d.xp["quiz/01"] = "50")), /damaged at "xp", entry "quiz\/01"/],
  ["a card without a date", altered((d) => (d.review["quiz/01/a"].card.due = "soon")), /damaged at "review"/],
  ["a day that is none", altered((d) => (d.streak.days = ["2026-02-30"])), /damaged at "streak"/],
  ["something unknown", altered((d) => (d.script = "x")), /something unknown: "script"/],
  ["a name that reaches into the program", FULL.replace('"quiz/01": 50', '"__proto__": 50'), /damaged at "xp"/],
]) {
  test(`importing ${name} changes nothing and says why`, () => {
    const { store, storage } = at("2026-06-10T12:00:00Z");
    store.award("quiz/07", 50);
    const before = storage.getItem(KEY);
    const answer = store.import(file);
    assert.equal(answer.ok, false);
    assert.match(answer.why, why);
    assert.equal(storage.getItem(KEY), before);
    assert.deepEqual([...storage.values.keys()], [KEY]);
  });
}

test("a document that cannot be read is laid aside, not overwritten", () => {
  const { store, storage } = at("2026-06-10T12:00:00Z");
  storage.setItem(KEY, "{broken");
  assert.equal(store.points(), 0);
  store.award("quiz/01", 50);
  assert.equal(storage.getItem(`${KEY}:unreadable`), "{broken");
  assert.equal(store.points(), 50);
});

test("two open tabs do not undo each other", () => {
  const storage = new Storage();
  const one = at("2026-06-10T12:00:00Z", storage).store;
  const other = at("2026-06-10T12:00:00Z", storage).store;
  one.award("quiz/01", 50);
  other.award("quiz/02", 50);
  assert.equal(one.points(), 100);
});

test("a browser that stores nothing still lets one work", () => {
  const full = {
    getItem: () => null,
    setItem: () => {
      throw new Error("QuotaExceededError");
    },
    removeItem: () => {},
  };
  const store = new Store(full, () => new Date("2026-06-10T12:00:00Z"));
  assert.equal(store.award("quiz/01", 50), 50);
  assert.deepEqual(store.import(FULL), {
    ok: false,
    why: "The browser refused to store it: its storage is full.",
  });
});

const noRoom = (values = new Map()) => ({
  getItem: (key) => values.get(key) ?? null,
  setItem: () => {
    throw new Error("QuotaExceededError");
  },
  removeItem: (key) => values.delete(key),
});

test("full storage: what was kept is still shown and exported, new points too, and the learner is told once a text", () => {
  const { store: before, storage } = at("2026-06-10T12:00:00Z");
  before.award("quiz/01", 80);
  const told = [];
  const store = new Store(noRoom(storage.values), () => new Date("2026-06-10T12:00:00Z"), {
    tell: (text) => told.push(text),
  });
  assert.equal(store.points(), 80);
  assert.deepEqual(told, []);
  store.award("quiz/02", 20);
  assert.equal(store.points(), 100);
  assert.deepEqual(JSON.parse(store.export()).xp, { "quiz/01": 80, "quiz/02": 20 });
  assert.match(told[0], /storage is full: your progress cannot be saved here/);
  assert.equal(store.keeps, false);
});

test("storage denied: everything works as long as the page is open, in all its bundles, and the learner is told", () => {
  const told = [];
  const memory = {};
  const one = new Store(null, () => new Date("2026-06-10T12:00:00Z"), { tell: (text) => told.push(text), memory });
  const other = new Store(null, () => new Date("2026-06-10T12:00:00Z"), { memory });
  assert.equal(one.award("quiz/01", 50), 50);
  assert.equal(other.points(), 50);
  assert.match(told[0], /kept only until you leave it/);
});

test("a program that is too long is refused in words when it is written; nothing else is lost", () => {
  const told = [];
  const storage = new Storage();
  const store = new Store(storage, () => new Date("2026-06-10T12:00:00Z"), { tell: (text) => told.push(text) });
  store.award("quiz/01", 80);
  store.keepProgram("01", { source: "print(1)" });
  store.keepProgram("01", { source: "#".repeat(58_000) });
  assert.equal(store.points(), 80);
  assert.equal(store.program("01").source, "print(1)");
  assert.match(told[0], /58,000 characters.*more than 50,000 are not kept/);
});

test("one damaged entry costs nothing else: a too long program that an earlier page wrote is cut", () => {
  const { store, storage } = at("2026-06-10T12:00:00Z");
  store.award("quiz/01", 80);
  const document = JSON.parse(storage.getItem(KEY));
  document.code["01"] = { source: "x".repeat(58_000), tries: 2, passed: true };
  document.quizzes["01"] = "damaged";
  storage.setItem(KEY, JSON.stringify(document));
  assert.equal(store.points(), 80);
  assert.deepEqual(
    [store.program("01").source.length, store.program("01").tries, store.quiz("01").tries],
    [50_000, 2, 0],
  );
});

test("progress that an earlier page laid aside because of one entry is found again", () => {
  const { store, storage } = at("2026-06-10T12:00:00Z");
  store.award("quiz/01", 80);
  const document = JSON.parse(storage.getItem(KEY));
  document.code["01"] = { source: "x".repeat(58_000), tries: 2, passed: true };
  storage.setItem(`${KEY}:unreadable`, JSON.stringify(document));
  storage.removeItem(KEY);
  assert.equal(store.points(), 80);
});

test("a document and an export of version 1 are read, and the figures' answers of that time with them", () => {
  const { storage } = at("2026-06-10T12:00:00Z");
  const old = JSON.parse(FULL);
  delete old.figures;
  old.version = 1;
  storage.setItem("llm-course.asked", JSON.stringify({ "How many GPUs?": 3, "Which?": null }));
  storage.setItem(KEY, JSON.stringify(old));
  const { store } = at("2026-06-10T12:00:00Z", storage);
  assert.deepEqual(store.figureAnswer("sizing-gpus", "How many GPUs?"), { guess: 3 });
  assert.deepEqual(store.figureAnswer("other", "Which?"), { guess: null });
  assert.equal(store.figureAnswer("other", "Never asked?"), null);
  store.award("quiz/03", 50);
  assert.equal(storage.getItem("llm-course.asked"), null);
  assert.deepEqual(store.figureAnswer("sizing-gpus", "How many GPUs?"), { guess: 3 });
  assert.deepEqual(at("2026-06-10T12:00:00Z").store.import(JSON.stringify(old)), { ok: true });
});

test("a document of version 2 keeps what lesson 4 earned when it was one lesson", () => {
  const { storage } = at("2026-06-10T12:00:00Z");
  const old = JSON.parse(FULL);
  delete old.written;
  old.version = 2;
  old.xp = { "quiz/04_quantization": 50, "quiz/05_speculative_decoding": 30 };
  old.quizzes = { "04_quantization": { tries: 2, best: 6, passed: true } };
  old.opening = { "04_quantization": { "no-error": { variant: 0, answer: 0 } } };
  const [item] = Object.values(old.review).filter(({ kind }) => kind === "quiz");
  const missed = (question) => ({ ...item, lesson: "04_quantization", question });
  old.review = { "quiz/04_quantization/halves": missed("halves"), "quiz/04_quantization/speed": missed("speed") };
  storage.setItem(KEY, JSON.stringify(old));
  const { store } = at("2026-06-10T12:00:00Z", storage);
  const passed = { tries: 2, best: 6, passed: true };
  assert.deepEqual(store.quiz("04a_number_formats"), passed);
  assert.deepEqual(store.quiz("04b_quantization_methods"), passed);
  assert.equal(store.points(), 80);
  assert.equal(store.award("quiz/04b_quantization_methods", 50), 0); // its points were earned with the first part's
  assert.deepEqual(store.opening("04a_number_formats"), { "no-error": { variant: 0, answer: 0 } });
  assert.deepEqual(Object.keys(store.read().review).sort(), [
    "quiz/04a_number_formats/speed",
    "quiz/04b_quantization_methods/halves",
  ]);
  assert.equal(store.read().version, 3);
});

test("a written answer is kept, and cut where it is longer than any answer", () => {
  const { store, storage } = at("2026-06-10T12:00:00Z");
  assert.equal(store.written("ps5_sizing/the-recommendation"), "");
  store.keepWritten("ps5_sizing/the-recommendation", "Rent two.");
  assert.equal(at("2026-06-10T12:00:00Z", storage).store.written("ps5_sizing/the-recommendation"), "Rent two.");
  store.keepWritten("ps5_sizing/the-recommendation", "x".repeat(30_000));
  assert.equal(store.written("ps5_sizing/the-recommendation").length, 20_000);
});

test("an export holds the figures' answers and the chosen GPU, and an import brings them back", () => {
  const { store, storage } = at("2026-06-10T12:00:00Z");
  store.keepFigureAnswer("draft-length", 4);
  storage.setItem("llm-course.gpu", "h200");
  const other = at("2026-06-10T12:00:00Z");
  assert.deepEqual(other.store.import(store.export()), { ok: true });
  assert.deepEqual(other.store.figureAnswer("draft-length", ""), { guess: 4 });
  assert.equal(other.storage.getItem("llm-course.gpu"), "h200");
});

test("forgetting everything leaves nothing of the course in the browser", () => {
  const { store, storage } = at("2026-06-10T12:00:00Z");
  store.award("quiz/01", 50);
  store.keepFigureAnswer("draft-length", 4);
  storage.setItem("llm-course.asked", '{"How many?": 3}');
  storage.setItem("llm-course.gpu", "h200");
  storage.setItem(`${KEY}:unreadable`, "{broken");
  store.clear();
  assert.deepEqual([...storage.values.keys()], []);
  assert.equal(store.figureAnswer("x", "How many?"), null);
});

test("days ahead of today's are ignored in the streak", () => {
  assert.equal(streakLength(["2026-06-09", "2026-06-10", "2099-01-01"], "2026-06-10"), 2);
});
