// A practice exercise on its page: editor, samples, further cases, own input, and the solution after an honest try.
// The page's HTML holds the exercise as JSON (book/_ext/practice.py); the program runs in the reader's own browser.

import { h } from "../../interactives/src/shared/dom.js";
import { LONGEST_PROGRAM } from "../../interactives/src/shared/progress_file.js";
import { store } from "../../interactives/src/shared/store.js";
import { caseView, plainOutput } from "./practice_results.js";
import limits from "./program_limits.json";
import { Runner } from "./runner.js";
import { howItEnded, judge, summary } from "./verdict.js";

const SECONDS = globalThis.courseProgramSeconds ?? limits.seconds;
const makeWorker = () => new Worker(new URL("python_worker.js", import.meta.url), { type: "module" });
const count = (number) => number.toLocaleString("en");
const button = (text, click, attributes = {}) => h("button", { type: "button", click, ...attributes }, text);

/** The keys that the editor really obeys: on Apple's systems the command key takes the place of Ctrl. */
function keys() {
  const apple = /Mac|iPhone|iPad/.test(navigator.userAgentData?.platform ?? navigator.platform);
  const modifier = apple ? "Cmd" : "Ctrl";
  return { run: `${modifier}+Enter`, indent: `${modifier}+]`, undo: `${modifier}+Z` };
}

class PracticePage {
  constructor(box) {
    this.box = box;
    this.exercise = JSON.parse(box.querySelector("script[type='application/json']").textContent);
    this.source = store().program(this.exercise.id)?.source || this.exercise.starter;
    this.editor = null;
    this.busy = false;
    this.runner = new Runner(makeWorker, (state) => this.showState(state), SECONDS);
    this.makeParts();
    box.querySelector(".practice-paper").classList.add("on-paper");
    box.append(this.layOut());
    this.showSolution();
    this.showPoints();
    this.loadEditor();
  }

  makeParts() {
    const { id, samples, cases } = this.exercise;
    this.state = h("p", { class: "practice-state" });
    this.bar = h("progress", { max: 1, value: 0, "aria-label": "Loading Python", hidden: true });
    this.live = h("p", { class: "practice-live", role: "status", "aria-live": "polite" });
    this.results = h("div", { class: "practice-results" });
    this.area = h("textarea", {
      "aria-label": "Your program",
      "aria-describedby": `${id}-hint`,
      spellcheck: "false",
      rows: 18,
      input: () => this.changed(this.area.value),
      focus: () => this.runner.warm(),
    });
    this.area.value = this.source;
    this.place = h("div", { class: "practice-editor" }, this.area);
    this.own = h("textarea", { id: `${id}-input`, rows: 4, spellcheck: "false" });
    this.own.value = samples[0]?.input ?? "";
    this.ownOutput = h("div", {});
    this.solution = h("details", { class: "practice-solution" });
    this.buttons = {
      samples: button("Run the samples", () => this.check(samples, false), { class: "practice-main" }),
      all: button("Check all cases", () => this.check([...samples, ...cases], true)),
      stop: button("Stop", () => this.runner.stop(), { disabled: true }),
      reset: button("Start over", () => this.reset()),
      own: button("Run with this input", () => this.runOwn()),
    };
  }

  layOut() {
    const { id } = this.exercise;
    const { run, indent } = keys();
    const hint = h(
      "div",
      { class: "practice-hint", id: `${id}-hint` },
      h("p", {}, `${run} runs the samples. Tab leaves the editor; ${indent} indents.`),
      h(
        "p",
        {},
        "Each case starts like a fresh ",
        h("code", {}, "python program.py"),
        `. A run may take ${SECONDS} seconds; the first ` +
          `${count(limits.outputCharacters)} characters of its output are shown. Programs of up to ` +
          `${count(LONGEST_PROGRAM)} characters are kept in this browser.`,
      ),
    );
    const { samples, all, stop, reset, own } = this.buttons;
    return h(
      "div",
      { class: "practice-app" },
      this.place,
      hint,
      h("div", { class: "practice-buttons" }, samples, all, stop, reset),
      this.state,
      this.bar,
      this.live,
      this.results,
      h(
        "details",
        { class: "practice-own" },
        h("summary", {}, "Try it with your own input"),
        h("label", { for: `${id}-input` }, "Standard input"),
        this.own,
        h("div", { class: "practice-buttons" }, own),
        this.ownOutput,
      ),
      this.solution,
    );
  }

  /** CodeMirror takes the text area's place; where it cannot be loaded, the text area does. */
  async loadEditor() {
    const { makeEditor } = await import("./editor.js").catch(() => ({}));
    if (!makeEditor) return;
    const hadFocus = document.activeElement === this.area;
    this.area.remove();
    this.editor = makeEditor(this.place, this.source, {
      label: "Your program",
      describedBy: `${this.exercise.id}-hint`,
      onChange: (text) => this.changed(text),
      onRun: () => this.check(this.exercise.samples, false),
      onFocus: () => this.runner.warm(),
    });
    if (hadFocus) this.editor.focus();
    this.place.dataset.ready = "";
  }

  changed(text) {
    this.source = text;
    const tooLong = text.length > LONGEST_PROGRAM;
    if (!tooLong) store().keepProgram(this.exercise.id, { source: text });
    if (tooLong || this.wasTooLong) {
      this.live.textContent = tooLong
        ? `The program has ${count(text.length)} characters; more than ${count(LONGEST_PROGRAM)} are not ` +
          "kept. This browser still holds it as it was before."
        : "The program is short enough again, and kept.";
    }
    this.wasTooLong = tooLong;
  }

  reset() {
    if (this.editor) this.editor.set(this.exercise.starter);
    else this.area.value = this.exercise.starter;
    this.changed(this.exercise.starter);
    this.results.replaceChildren();
    this.live.textContent = `The program is the starter again. ${keys().undo} in the editor brings yours back.`;
  }

  showState({ state, done, total, ended, error }) {
    this.state.textContent = {
      loading: "Loading Python …",
      ready: "Python is ready.",
      running: "Running …",
      cold: { broken: "", unavailable: howItEnded({ ended, error }) }[ended] ?? "Starting Python anew …",
    }[state];
    this.bar.hidden = state !== "loading";
    if (state === "loading") this.bar.value = done / total;
    if (state === "ready") keepPython();
  }

  setBusy(on) {
    this.busy = on;
    const { samples, all, stop, reset, own } = this.buttons;
    for (const one of [samples, all, reset, own]) one.disabled = on;
    stop.disabled = !on;
  }

  /** Runs the cases one after another; `counts`: they are all cases, and passing them is worth points. */
  async check(cases, counts) {
    if (this.busy) return;
    this.setBusy(true);
    this.live.textContent = "";
    const program = this.source;
    const { right, firstFault } = await this.runCases(program, cases);
    this.setBusy(false);
    const passed = right === cases.length;
    this.keepTry(program, counts, passed);
    const { id, xp, samples, cases: further } = this.exercise;
    const earned = counts && passed ? store().award(`practice/${id}`, xp) : 0;
    const more = counts ? undefined : samples.length + further.length;
    this.live.textContent = summary({ right, of: cases.length, firstFault, more, earned });
    this.showSolution();
    this.showPoints();
  }

  async runCases(program, cases) {
    const list = h("ol", { class: "practice-cases" });
    this.results.replaceChildren(list);
    let [right, firstFault] = [0, ""];
    for (const one of cases) {
      const outcome = await this.runner.run(program, one.input);
      const verdict = judge(one, outcome, SECONDS);
      list.append(h("li", {}, caseView(one, outcome, verdict, !verdict.right && !firstFault)));
      if (verdict.right) right += 1;
      else firstFault ||= `${one.name}: ${verdict.why}`;
      if (outcome.ended !== "normally") break;
    }
    return { right, firstFault };
  }

  /** A run of the untouched starter is no try, and shows no solution. */
  keepTry(source, counts, passed) {
    const bare = (text) => text.replace(/\s/g, "");
    const tried = bare(source) !== bare(this.exercise.starter);
    if (!counts && !tried) return;
    const before = store().program(this.exercise.id) ?? { tries: 0, passed: false };
    const kept = source.length > LONGEST_PROGRAM ? {} : { source };
    store().keepProgram(this.exercise.id, {
      ...kept,
      tries: before.tries + (tried ? 1 : 0),
      passed: before.passed || (counts && passed),
    });
  }

  async runOwn() {
    if (this.busy) return;
    this.setBusy(true);
    this.ownOutput.replaceChildren();
    const outcome = await this.runner.run(this.source, this.own.value);
    this.setBusy(false);
    const ended = howItEnded(outcome, SECONDS);
    this.ownOutput.replaceChildren(plainOutput(outcome, ended));
    this.live.textContent = ended ?? (outcome.error ? "It ended with an error." : "It ran; its output is below.");
  }

  showSolution() {
    const { tries = 0, passed = false } = store().program(this.exercise.id) ?? {};
    const { open } = this.solution;
    this.solution.replaceChildren(
      h("summary", {}, "A solution"),
      tries > 0 || passed
        ? h("pre", { tabindex: "0" }, h("code", {}, this.exercise.solution))
        : h("p", {}, "It shows once a program of your own has run against the samples."),
    );
    this.solution.open = open;
  }

  showPoints() {
    const done = store().program(this.exercise.id)?.passed;
    const badge = this.box.closest("article")?.querySelector(".practice-xp");
    if (badge) badge.textContent = done ? `✓ solved, ${this.exercise.xp} XP` : `${this.exercise.xp} XP`;
  }
}

/** Python was loaded: the service worker keeps it for the next visit, which may have no network. */
async function keepPython() {
  const registration = await navigator.serviceWorker?.ready;
  registration?.active.postMessage("keep Python");
}

for (const box of document.querySelectorAll(".practice")) new PracticePage(box);
