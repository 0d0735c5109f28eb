// A practice exercise on its page: editor, samples, further cases, own input, and the solution after an honest try.
// The page's HTML holds the exercise as JSON (book/_ext/practice.py); the program runs in the reader's own browser.

import { h } from "../../interactives/src/shared/dom.js";
import { store } from "../../interactives/src/shared/store.js";
import { firstDifference, sayDifference } from "./compare.js";
import { caseView, plainOutput } from "./practice_results.js";
import { Runner } from "./runner.js";

const SECONDS = globalThis.courseProgramSeconds ?? 60;
const ENDED = {
  stopped: "You stopped the program.",
  timeout: `The program ran for ${SECONDS} seconds and was stopped. Is there a loop that never ends?`,
  memory: "The program used up the memory that a browser gives it. Python was started anew; your code is kept.",
  broken: "Python itself broke down, as it does when a recursion goes too deep. It is started anew at the next run; your code is kept.",
};
const makeWorker = () => new Worker(new URL("python_worker.js", import.meta.url), { type: "module" });

function mount(box) {
  const exercise = JSON.parse(box.querySelector("script[type='application/json']").textContent);
  const kept = store().program(exercise.id);
  let source = kept?.source || exercise.starter;
  let editor = null;
  let busy = false;

  const state = h("p", { class: "practice-state" });
  const bar = h("progress", { max: 1, value: 0, "aria-label": "Loading Python", hidden: true });
  const live = h("p", { class: "practice-live", role: "status", "aria-live": "polite" });
  const results = h("div", { class: "practice-results" });
  const place = h("div", { class: "practice-editor" });
  const hint = h("p", { class: "practice-hint", id: `${exercise.id}-hint` }, "Ctrl+Enter runs the samples. Tab leaves the editor; Ctrl+] indents.");
  const area = h("textarea", { "aria-label": "Your program", spellcheck: "false", rows: 18, input: () => changed(area.value), focus: () => runner.warm() });
  area.value = source;
  place.append(area);

  const own = h("textarea", { id: `${exercise.id}-input`, rows: 4, spellcheck: "false" });
  own.value = exercise.samples[0]?.input ?? "";
  const ownOutput = h("div", {});
  const buttons = {
    samples: h("button", { type: "button", class: "practice-main", click: () => check(exercise.samples, false) }, "Run the samples"),
    all: h("button", { type: "button", click: () => check([...exercise.samples, ...exercise.cases], true) }, "Check all cases"),
    stop: h("button", { type: "button", disabled: true, click: () => runner.stop() }, "Stop"),
    reset: h("button", { type: "button", click: reset }, "Start over"),
    own: h("button", { type: "button", click: runOwn }, "Run with this input"),
  };
  const solution = h("details", { class: "practice-solution" });

  const runner = new Runner(makeWorker, showState, SECONDS);

  box.querySelector(".practice-paper").classList.add("on-paper");
  box.append(
    h(
      "div",
      { class: "practice-app" },
      place,
      hint,
      h("div", { class: "practice-buttons" }, buttons.samples, buttons.all, buttons.stop, buttons.reset),
      state,
      bar,
      live,
      results,
      h(
        "details",
        { class: "practice-own" },
        h("summary", {}, "Try it with your own input"),
        h("label", { for: `${exercise.id}-input` }, "Standard input"),
        own,
        h("div", { class: "practice-buttons" }, buttons.own),
        ownOutput,
      ),
      solution,
    ),
  );
  showSolution();
  showXp();
  import("./editor.js").then(({ makeEditor }) => {
    const hadFocus = document.activeElement === area;
    area.remove();
    editor = makeEditor(place, source, {
      label: "Your program",
      describedBy: `${exercise.id}-hint`,
      onChange: changed,
      onRun: () => check(exercise.samples, false),
      onFocus: () => runner.warm(),
    });
    if (hadFocus) editor.focus();
    place.dataset.ready = "";
  }, () => {}); // without it the text area does

  function changed(text) {
    source = text;
    store().keepProgram(exercise.id, { source });
  }

  function reset() {
    (editor ?? { set: (text) => (area.value = text) }).set(exercise.starter);
    changed(exercise.starter);
    results.replaceChildren();
    live.textContent = "The program is the starter again. Ctrl+Z in the editor brings yours back.";
  }

  function showState({ state: now, done, total, ended }) {
    state.textContent = {
      loading: "Loading Python …",
      ready: "Python is ready.",
      running: "Running …",
      cold: ended === "broken" ? "" : "Starting Python anew …",
    }[now];
    bar.hidden = now !== "loading";
    if (now === "loading") bar.value = done / total;
  }

  function setBusy(on) {
    busy = on;
    for (const button of [buttons.samples, buttons.all, buttons.reset, buttons.own]) button.disabled = on;
    buttons.stop.disabled = !on;
  }

  async function check(cases, counts) {
    if (busy) return;
    setBusy(true);
    results.replaceChildren();
    live.textContent = "";
    const program = source;
    const list = h("ol", { class: "practice-cases" });
    results.append(list);
    let right = 0;
    let firstFault = "";
    for (const one of cases) {
      const outcome = await runner.run(program, one.input);
      const verdict = judge(one, outcome);
      list.append(h("li", {}, caseView(one, outcome, verdict, !verdict.right && !firstFault)));
      if (verdict.right) right += 1;
      else firstFault ||= `${one.name}: ${verdict.why}`;
      if (outcome.ended !== "normally") break;
    }
    setBusy(false);
    const passed = right === cases.length;
    const tried = program.replace(/\s/g, "") !== exercise.starter.replace(/\s/g, "");
    const before = store().program(exercise.id) ?? { tries: 0, passed: false };
    if (counts || tried) {
      store().keepProgram(exercise.id, {
        source: program,
        tries: before.tries + (tried ? 1 : 0),
        passed: before.passed || (counts && passed),
      });
    }
    const earned = counts && passed ? store().award(`practice/${exercise.id}`, exercise.xp) : 0;
    live.textContent = passed
      ? counts
        ? `All ${cases.length} cases are right.${earned ? ` ${earned} XP earned.` : ""}`
        : `Both samples are right. Now check all ${exercise.samples.length + exercise.cases.length} cases.`.replace("Both", cases.length === 2 ? "Both" : `All ${cases.length}`)
      : `${right} of ${cases.length} right. ${firstFault}`;
    showSolution();
    showXp();
  }

  function judge(one, { output, error, ended }) {
    if (ended !== "normally") return { right: false, why: ENDED[ended] };
    if (one.refused) {
      return error === null ? { right: false, why: "this input must end with an error, and your program ended without one" } : { right: true };
    }
    if (error !== null) return { right: false, why: error.trim().split("\n").at(-1) };
    const difference = firstDifference(one.expected, output);
    return difference ? { right: false, difference, why: sayDifference(one.expected, output, difference) } : { right: true };
  }

  async function runOwn() {
    if (busy) return;
    setBusy(true);
    ownOutput.replaceChildren();
    const outcome = await runner.run(source, own.value);
    setBusy(false);
    ownOutput.replaceChildren(plainOutput(outcome, ENDED[outcome.ended]));
    live.textContent = outcome.error ? "It ended with an error." : (ENDED[outcome.ended] ?? "It ran; its output is below.");
  }

  function showSolution() {
    const { tries = 0, passed = false } = store().program(exercise.id) ?? {};
    const allowed = tries > 0 || passed;
    const open = solution.open;
    solution.replaceChildren(
      h("summary", {}, "A solution"),
      allowed
        ? h("pre", { tabindex: "0" }, h("code", {}, exercise.solution))
        : h("p", {}, "It shows once a program of your own has run against the samples."),
    );
    solution.open = open;
  }

  function showXp() {
    const done = store().program(exercise.id)?.passed;
    const badge = box.closest("article")?.querySelector(".practice-xp");
    if (badge) badge.textContent = done ? `✓ solved, ${exercise.xp} XP` : `${exercise.xp} XP`;
  }
}

for (const box of document.querySelectorAll(".practice")) mount(box);
