// Shows everything that the browser remembers, and exports and imports it as a file: points, quizzes, programs, streak, export, import.
// State: `lessons` [[id, title, xp]] and `programs` [[id, title, xp]] of the course.

import { localDay } from "../shared/days.js";
import { h } from "../shared/dom.js";
import { makeFrame } from "../shared/frame.js";
import { CHANGED, store } from "../shared/store.js";

const QUESTIONS = 7; // of a lesson's quiz
const counted = (n, one, many = `${one}s`) => `${n} ${n === 1 ? one : many}`;
const button = (name, click, main = false) => h("button", { type: "button", class: main ? "main" : null, click }, name);

function quizRow([id, title, xp]) {
  const { tries, best, passed } = store().quiz(id);
  const score = `best ${best} of ${QUESTIONS}`;
  return [title, passed ? `passed, ${score}` : tries ? `${score} so far` : "not tried", passed ? `${xp} XP` : "–"];
}

function programRow([id, title, xp]) {
  const { passed = false, tries = 0 } = store().program(id) ?? {};
  const state = passed ? "solved" : tries ? counted(tries, "try", "tries") : "not tried";
  return [title, state, passed ? `${xp} XP` : "–"];
}

function table(caption, rows) {
  if (rows.length === 0) return "";
  const heads = [caption, "State", "Points"].map((name) => h("th", { scope: "col" }, name));
  const lines = rows.map(([title, ...cells]) =>
    h(
      "tr",
      {},
      h("th", { scope: "row" }, title),
      cells.map((text) => h("td", {}, text)),
    ),
  );
  const body = h("table", {}, h("caption", {}, caption), h("thead", {}, h("tr", {}, heads)), h("tbody", {}, lines));
  return h("div", { class: "numbers", "data-open": true, tabindex: "0", role: "region", "aria-label": caption }, body);
}

function streakWords() {
  const { on, length, studiedToday, restDays } = store().streak();
  if (!on) {
    return `Off. When it is on, days on which you do something are counted; up to ${restDays} rest days in a row are forgiven.`;
  }
  const today = studiedToday ? ", today included" : "";
  return `${counted(length, "day")} so far${today}. Up to ${restDays} rest days in a row are forgiven; days are those of your own calendar.`;
}

function download(frame) {
  const address = URL.createObjectURL(new Blob([store().export()], { type: "application/json" }));
  const link = h("a", { href: address, download: `llm-serving-course-${localDay(new Date())}.json` });
  frame.append(link);
  link.click();
  link.remove();
  setTimeout(() => URL.revokeObjectURL(address), 10_000);
}

class Progress {
  constructor(model, { frame, say }) {
    Object.assign(this, { model, frame, say });
    this.told = h("p", { class: "result", tabindex: "-1" });
    this.summary = h("div", {});
    this.asked = h("div", {}); // the question before something is replaced or forgotten
    this.streak = h("input", { type: "checkbox", id: "streak", change: () => this.#countDays() });
    this.streakNote = h("p", { class: "note" });
    this.file = h("input", {
      type: "file",
      accept: "application/json,.json",
      id: "import",
      change: () => this.#chosen(),
    });
    frame.append(
      h("p", { class: "title" }, "Your progress in this browser"),
      this.told,
      this.summary,
      h("div", { class: "row" }, h("label", { class: "option", for: "streak" }, this.streak, "Count my study days")),
      this.streakNote,
      h(
        "div",
        { class: "row" },
        button("Export as a file", () => this.#export(), true),
        h("label", { for: "import" }, "Import a file"),
        this.file,
      ),
      h(
        "div",
        { class: "row" },
        button("Forget everything", () => this.#askToForget()),
      ),
      this.asked,
    );
  }

  show() {
    const due = store().due().length;
    this.streak.checked = store().streak().on;
    this.streakNote.textContent = streakWords();
    const today = due ? `${counted(due, "question")} due today` : "nothing due today";
    const unkept = "This browser does not keep it: export it before you leave the page.";
    this.summary.replaceChildren(
      h("p", {}, h("strong", {}, `${store().points()} XP`), ` · ${today}`),
      store().keeps ? "" : h("p", { class: "wrong" }, unkept),
      table("Quizzes", this.model.get("lessons").map(quizRow)),
      table("Practice programs", this.model.get("programs").map(programRow)),
    );
  }

  #tell(text) {
    this.told.textContent = text;
    this.told.focus();
    this.say(text);
    this.show();
  }

  #countDays() {
    const on = this.streak.checked;
    store().setStreak(on);
    this.#tell(on ? "Days are counted from now on." : "Days are no longer counted, and those that were are forgotten.");
  }

  #export() {
    download(this.frame);
    this.#tell("Exported. Keep the file; it brings everything back on any browser.");
  }

  /** A file was chosen: it is checked first, and only a good one is asked about. */
  async #chosen() {
    const text = await this.file.files[0]?.text();
    this.file.value = "";
    if (text === undefined) return;
    const { why } = store().readExport(text);
    if (why !== undefined) return this.#tell(`${why} Nothing was changed.`);
    if (store().points() === 0 && store().daysUntilDue() === null) return this.#import(text);
    const question = `This browser already has ${store().points()} XP. The file takes the place of what is here.`;
    this.#confirm(question, "Replace it", () => this.#import(text));
  }

  #import(text) {
    const { ok, why } = store().import(text);
    this.#tell(ok ? `Imported: ${store().points()} XP.` : `${why} Nothing was changed.`);
  }

  #askToForget() {
    const question = `Forget all ${store().points()} XP, answers, programs and due questions of this browser?`;
    this.#confirm(question, "Forget everything", () => {
      store().clear();
      this.#tell("Everything is forgotten.");
    });
  }

  #confirm(question, yes, action) {
    const decide = (then) => () => {
      this.asked.replaceChildren();
      then();
    };
    const no = button(
      "Leave it as it is",
      decide(() => this.#tell("Nothing was changed.")),
    );
    this.asked.replaceChildren(
      h(
        "div",
        { class: "danger", role: "group", "aria-label": "Please confirm" },
        h("p", {}, question),
        h("div", { class: "row" }, button(yes, decide(action), true), no),
      ),
    );
    no.focus();
    this.say(question);
  }
}

function render({ model, el }) {
  const made = makeFrame(el, "Your progress", "progress");
  const progress = new Progress(model, made);
  const show = () => progress.show();
  show();
  addEventListener(CHANGED, show);
  addEventListener("storage", show);
  return () => {
    removeEventListener(CHANGED, show);
    removeEventListener("storage", show);
    made.end();
  };
}

export default { render };
