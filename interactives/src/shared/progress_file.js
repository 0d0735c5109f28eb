// The shape of the progress document, checked before anything is stored: a broken or foreign file is refused with the
// place that is wrong, so that it can change nothing.

import { isDay } from "./days.js";

export const FORMAT = "llm-serving-course progress";
export const VERSION = 1;

export const emptyDocument = () => ({
  format: FORMAT,
  version: VERSION,
  xp: {},
  quizzes: {},
  opening: {},
  predictions: {},
  review: {},
  code: {},
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
  code: shape({ source: isText(50_000), tries: isCount, passed: isFlag }),
};

const FORBIDDEN_NAMES = ["__proto__", "constructor", "prototype"];

/** null for a good document, else one sentence that says what is wrong with it. */
export function whatIsWrong(document) {
  if (!isObject(document) || document.format !== FORMAT) {
    return "This is no progress file of this course: its first entry is not the course's.";
  }
  if (!Number.isInteger(document.version) || document.version < 1) return "The file does not say its version.";
  if (document.version > VERSION) {
    return `The file is of version ${document.version}, this page knows ${VERSION}: reload the page, then try again.`;
  }
  const known = [...Object.keys(emptyDocument()), "exported"];
  const stranger = Object.keys(document).find((name) => !known.includes(name));
  if (stranger !== undefined) return `The file holds something unknown: "${stranger.slice(0, 40)}".`;
  for (const [section, check] of Object.entries(SECTIONS)) {
    if (!isObject(document[section])) return `The file is incomplete: "${section}" is missing.`;
    for (const [name, value] of Object.entries(document[section])) {
      if (FORBIDDEN_NAMES.includes(name) || name.length > 200 || !check(value)) {
        return `The file is damaged at "${section}", entry "${name.slice(0, 80)}".`;
      }
    }
  }
  const streak = document.streak;
  if (!shape({ on: isFlag, days: Array.isArray })(streak)) return 'The file is incomplete: "streak" is missing.';
  const inOrder = streak.days.every((day, index) => isDay(day) && (index === 0 || streak.days[index - 1] < day));
  return inOrder ? null : 'The file is damaged at "streak": its days are no dates in order.';
}
