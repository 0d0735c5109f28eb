// Days as the learner's own calendar counts them: a lesson finished at 23:30 and the next at 00:30 are two days,
// whatever the time zone, and a day of 23 or 25 hours is one day.

const two = (number) => String(number).padStart(2, "0");

/** The local calendar day of a moment, "2026-03-29". */
export function localDay(moment) {
  return `${moment.getFullYear()}-${two(moment.getMonth() + 1)}-${two(moment.getDate())}`;
}

/** Whole days from one day to another. Days are compared as dates of the calendar, so that clock changes do not count. */
export function daysBetween(earlier, later) {
  return Math.round((Date.parse(`${later}T00:00:00Z`) - Date.parse(`${earlier}T00:00:00Z`)) / 86_400_000);
}

export const isDay = (text) =>
  typeof text === "string" &&
  /^\d{4}-\d{2}-\d{2}$/.test(text) &&
  !Number.isNaN(Date.parse(`${text}T00:00:00Z`)) &&
  new Date(`${text}T00:00:00Z`).toISOString().startsWith(text);

/** Days in a row that may pass without study before a streak ends: a weekend never ends one. */
export const REST_DAYS = 2;

/**
 * Count the study days of the streak that reaches until `today`; rest days neither count nor end it.
 * `days`: study days, each once, in order. Days after today come from a clock that was wrong and do not count.
 */
export function streakLength(days, today) {
  let length = 0;
  let next = today;
  for (const day of days.filter((day) => day <= today).reverse()) {
    if (daysBetween(day, next) > REST_DAYS + 1) break;
    length += 1;
    next = day;
  }
  return length;
}
