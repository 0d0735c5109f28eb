// The shape of the progress document. An import is checked before it replaces anything, and a refusal names the place
// that is wrong. What the browser itself kept is mended entry by entry, so that one damaged entry costs nothing else.
//
// Version 2 added `figures`, the answers to the questions of the interactive figures. Version 3 has lesson 4 in two parts
// and `written`, the answers to questions that a person would grade.

import { isDay } from "./days.js";

export const FORMAT = "llm-serving-course progress";
export const VERSION = 3;
export const LONGEST_PROGRAM = 50_000; // characters
export const LONGEST_ANSWER = 20_000; // characters

export const emptyDocument = () => ({
  format: FORMAT,
  version: VERSION,
  xp: {},
  quizzes: {},
  opening: {},
  predictions: {},
  figures: {},
  review: {},
  code: {},
  written: {},
  streak: { on: false, days: [] },
});

const isObject = (value) => typeof value === "object" && value !== null && !Array.isArray(value);
const isText = (limit) => (value) => typeof value === "string" && value.length <= limit;
const isFlag = (value) => typeof value === "boolean";
const isNumber = (value) => typeof value === "number" && Number.isFinite(value);
const isCount = (value) => Number.isInteger(value) && value >= 0 && value < 1e9;
const isMoment = (value) => typeof value === "string" && isDay(value.slice(0, 10)) && !Number.isNaN(Date.parse(value));

const isNumberOrText = (value) => isNumber(value) || isText(500)(value);
const isAnswer = (value) =>
  isNumber(value) || isText(300)(value) || (Array.isArray(value) && value.length <= 20 && value.every(isCount));
const isGuess = (value) =>
  value === null || isNumberOrText(value) || (Array.isArray(value) && value.length <= 20 && value.every(isNumber));
const optional = (check) => (value) => value === undefined || check(value);

const shape = (fields) => (value) =>
  isObject(value) &&
  Object.entries(fields).every(([name, check]) => check(value[name])) &&
  Object.keys(value).every((name) => Object.hasOwn(fields, name));

const card = shape({
  due: isMoment,
  stability: isNumber,
  difficulty: isNumber,
  elapsed_days: isNumber,
  scheduled_days: isNumber,
  learning_steps: isNumber,
  reps: isCount,
  lapses: isCount,
  state: (value) => [0, 1, 2, 3].includes(value),
  last_review: optional(isMoment),
});

const quizItem = shape({ kind: (value) => value === "quiz", lesson: isText(100), question: isText(100), card });
const predictionItem = shape({
  kind: (value) => value === "prediction",
  card,
  prediction: shape({
    question: isText(2000),
    answer: isNumberOrText,
    unit: isText(100),
    explain: isText(4000),
    tolerance: isNumber,
  }),
});

const openingAnswers = (value) =>
  isObject(value) && Object.values(value).every(shape({ variant: isCount, answer: isAnswer }));

const SECTIONS = {
  xp: isCount,
  quizzes: shape({ tries: isCount, best: isCount, passed: isFlag }),
  opening: openingAnswers,
  predictions: shape({ guess: isNumberOrText, correct: isFlag }),
  review: (value) => quizItem(value) || predictionItem(value),
  figures: shape({ guess: isGuess }),
  code: shape({ source: isText(LONGEST_PROGRAM), tries: isCount, passed: isFlag }),
  written: isText(LONGEST_ANSWER),
};

const FORBIDDEN_NAMES = ["__proto__", "constructor", "prototype"];
const isGood = (check, name, value) => !FORBIDDEN_NAMES.includes(name) && name.length <= 200 && check(value);
const inOrder = (days) => days.every((day, index) => isDay(day) && (index === 0 || days[index - 1] < day));

const WHOLE = "04_quantization"; // lesson 4 before version 3
const PARTS = ["04a_number_formats", "04b_quantization_methods"];
const OF_PART_2 = ["halves", "who-adjusts"]; // its questions that moved to the second part

/** Lesson 4's entries under the names of its parts: a pass counts for both, its points for the first. */
function inParts(document) {
  const { xp = {}, quizzes = {}, opening = {}, review = {} } = document;
  const moved = { xp: { ...xp }, quizzes: { ...quizzes }, opening: { ...opening }, review: { ...review } };
  const take = (section, name) => {
    const entry = moved[section][name];
    delete moved[section][name];
    return entry;
  };
  const [quiz, first, points] = [take("quizzes", WHOLE), take("opening", WHOLE), take("xp", `quiz/${WHOLE}`)];
  if (quiz !== undefined) for (const part of PARTS) moved.quizzes[part] = quiz;
  if (first !== undefined) moved.opening[PARTS[0]] = first;
  if (points !== undefined) [moved.xp[`quiz/${PARTS[0]}`], moved.xp[`quiz/${PARTS[1]}`]] = [points, 0];
  for (const [name, item] of Object.entries(review)) {
    if (item?.lesson !== WHOLE) continue;
    const lesson = PARTS[OF_PART_2.includes(item.question) ? 1 : 0];
    moved.review[`quiz/${lesson}/${item.question}`] = { ...take("review", name), lesson };
  }
  return { ...document, ...moved };
}

/** The document of an earlier version as this version has it; others are returned as they are. */
export function upgrade(document) {
  if (!isObject(document) || ![1, 2].includes(document.version)) return document;
  const sections = ["xp", "quizzes", "opening", "review"].every((name) => isObject(document[name] ?? {}));
  const current = { ...document, version: VERSION, figures: document.figures ?? {}, written: {} };
  return sections ? inParts(current) : current;
}

/** Say in one sentence that `value` is no document of this course and version, or return null. */
function whyForeign(value) {
  if (!isObject(value) || value.format !== FORMAT) {
    return "This is no progress file of this course: its first entry is not the course's.";
  }
  if (!Number.isInteger(value.version) || value.version < 1) return "The file does not say its version.";
  if (value.version > VERSION) {
    return `The file is of version ${value.version}, this page knows ${VERSION}: reload the page, then try again.`;
  }
  return null;
}

/** Say in one sentence what is wrong with a document of this version, or return null for a good one. */
export function whatIsWrong(document) {
  const foreign = whyForeign(document);
  if (foreign !== null) return foreign;
  const known = [...Object.keys(emptyDocument()), "exported", "gpu"];
  const stranger = Object.keys(document).find((name) => !known.includes(name));
  if (stranger !== undefined) return `The file holds something unknown: "${stranger.slice(0, 40)}".`;
  if (!optional(isText(100))(document.gpu)) return 'The file is damaged at "gpu".';
  for (const [section, check] of Object.entries(SECTIONS)) {
    if (!isObject(document[section])) return `The file is incomplete: "${section}" is missing.`;
    for (const [name, value] of Object.entries(document[section])) {
      if (!isGood(check, name, value)) return `The file is damaged at "${section}", entry "${name.slice(0, 80)}".`;
    }
  }
  const streak = document.streak;
  if (!shape({ on: isFlag, days: Array.isArray })(streak)) return 'The file is incomplete: "streak" is missing.';
  return inOrder(streak.days) ? null : 'The file is damaged at "streak": its days are no dates in order.';
}

/** Every good entry of a document that this browser kept; null where it is none of ours. Programs are cut to length. */
export function mend(value) {
  const document = upgrade(value);
  if (whyForeign(document) !== null) return null;
  const mended = emptyDocument();
  for (const [section, check] of Object.entries(SECTIONS)) {
    for (const [name, entry] of Object.entries(isObject(document[section]) ? document[section] : {})) {
      const cut = section === "code" && typeof entry?.source === "string";
      const kept = cut ? { ...entry, source: entry.source.slice(0, LONGEST_PROGRAM) } : entry;
      if (isGood(check, name, kept)) mended[section][name] = kept;
    }
  }
  const { on, days } = isObject(document.streak) ? document.streak : {};
  mended.streak = { on: on === true, days: Array.isArray(days) ? [...new Set(days.filter(isDay))].sort() : [] };
  return mended;
}
