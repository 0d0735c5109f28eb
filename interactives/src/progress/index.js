// What the browser remembers, shown, and taken along as a file: points, quizzes, programs, streak, export, import.
// State: `lessons` [[id, title, xp]] and `programs` [[id, title, xp]] of the course.

import { localDay } from "../shared/days.js";
import { h } from "../shared/dom.js";
import { makeFrame } from "../shared/frame.js";
import { CHANGED, store } from "../shared/store.js";

const times = (n, one) => `${n} ${one}${n === 1 ? "" : "s"}`;

function render({ model, el }) {
  const { frame, say, end } = makeFrame(el, "Your progress", "progress");
  const told = h("p", { class: "result", tabindex: "-1" });
  const summary = h("div", {});
  const asked = h("div", {});

  const streak = h("input", { type: "checkbox", id: "streak" });
  streak.addEventListener("change", () => {
    store().setStreak(streak.checked);
    tell(
      streak.checked
        ? "Days are counted from now on."
        : "Days are no longer counted, and those that were are forgotten.",
    );
  });
  const streakNote = h("p", { class: "note" });

  const file = h("input", { type: "file", accept: "application/json,.json", id: "import" });
  file.addEventListener("change", async () => {
    const text = file.files[0] ? await file.files[0].text() : null;
    file.value = "";
    if (text === null) return;
    if (store().points() === 0 && store().daysUntilDue() === null) return take(text);
    confirmFirst(
      `This browser already has ${store().points()} XP. The file takes the place of what is here.`,
      "Replace it",
      () => take(text),
    );
  });

  function take(text) {
    const answer = store().import(text);
    tell(answer.ok ? `Imported: ${store().points()} XP.` : `${answer.why} Nothing was changed.`);
  }

  function download() {
    const address = URL.createObjectURL(new Blob([store().export()], { type: "application/json" }));
    const link = h("a", { href: address, download: `llm-serving-course-${localDay(new Date())}.json` });
    frame.append(link);
    link.click();
    link.remove();
    setTimeout(() => URL.revokeObjectURL(address), 10_000);
    tell("Exported. Keep the file; it brings everything back on any browser.");
  }

  function forget() {
    store().clear();
    tell("Everything is forgotten.");
  }

  function confirmFirst(question, yes, action) {
    const close = () => asked.replaceChildren();
    const decide = (then) => () => {
      close();
      then();
    };
    const no = h("button", { type: "button", click: decide(() => tell("Nothing was changed.")) }, "Leave it as it is");
    asked.replaceChildren(
      h(
        "div",
        { class: "danger", role: "group", "aria-label": "Please confirm" },
        h("p", {}, question),
        h("div", { class: "row" }, h("button", { type: "button", class: "main", click: decide(action) }, yes), no),
      ),
    );
    no.focus();
    say(question);
  }

  function tell(text) {
    told.textContent = text;
    told.focus();
    say(text);
    show();
  }

  function show() {
    const quizzes = model.get("lessons").map(([id, title, xp]) => {
      const { tries, best, passed } = store().quiz(id);
      return [
        title,
        passed ? `passed, best ${best} of 7` : tries ? `best ${best} of 7 so far` : "not tried",
        passed ? `${xp} XP` : "–",
      ];
    });
    const programs = model.get("programs").map(([id, title, xp]) => {
      const program = store().program(id);
      return [
        title,
        program?.passed
          ? "solved"
          : program?.tries
            ? times(program.tries, "try").replace("trys", "tries")
            : "not tried",
        program?.passed ? `${xp} XP` : "–",
      ];
    });
    const table = (caption, rows) =>
      h(
        "div",
        { class: "numbers", "data-open": true, tabindex: "0", role: "region", "aria-label": caption },
        h(
          "table",
          {},
          h("caption", {}, caption),
          h(
            "thead",
            {},
            h(
              "tr",
              {},
              ["", "State", "Points"].map((name, n) => (n ? h("th", { scope: "col" }, name) : h("td", {}))),
            ),
          ),
          h(
            "tbody",
            {},
            rows.map(([title, state, points]) =>
              h("tr", {}, h("th", { scope: "row" }, title), h("td", {}, state), h("td", {}, points)),
            ),
          ),
        ),
      );
    const due = store().due().length;
    const counted = store().streak();
    streak.checked = counted.on;
    streakNote.textContent = counted.on
      ? `${times(counted.length, "day")} so far${counted.studiedToday ? ", today included" : ""}. Up to ${counted.restDays} rest days in a row are forgiven; days are those of your own calendar.`
      : "Off. When it is on, days on which you do something are counted; up to 2 rest days in a row are forgiven.";
    summary.replaceChildren(
      h(
        "p",
        {},
        h("strong", {}, `${store().points()} XP`),
        ` · ${due ? `${times(due, "question")} due today` : "nothing due today"}`,
      ),
      quizzes.length ? table("Quizzes", quizzes) : "",
      programs.length ? table("Practice programs", programs) : "",
    );
  }

  frame.append(
    h("p", { class: "title" }, "Your progress in this browser"),
    told,
    summary,
    h(
      "div",
      { class: "row" },
      h("label", { class: "option", for: "streak" }, streak, h("span", {}, "Count my study days")),
    ),
    streakNote,
    h(
      "div",
      { class: "row" },
      h("button", { type: "button", class: "main", click: download }, "Export as a file"),
      h("label", { for: "import" }, "Import a file"),
      file,
    ),
    h(
      "div",
      { class: "row" },
      h(
        "button",
        {
          type: "button",
          click: () =>
            confirmFirst(
              `Forget all ${store().points()} XP, answers, programs and due questions of this browser?`,
              "Forget everything",
              forget,
            ),
        },
        "Forget everything",
      ),
    ),
    asked,
  );
  show();
  addEventListener(CHANGED, show);
  addEventListener("storage", show);
  return () => {
    removeEventListener(CHANGED, show);
    removeEventListener("storage", show);
    end();
  };
}

export default { render };
