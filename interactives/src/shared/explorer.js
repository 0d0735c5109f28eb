// The frame of every figure: question, controls, picture, one sentence, table, reset.
//
// A figure is data and pure functions; the frame does the rest, in JupyterLab (anywidget) and on the page alike:
//   name, title, usesGpu      defaults: the start state (the traits of the Python class)
//   controls(state, env)      specs of controls.js; the state they hold also goes into the page's address
//   question(state, env)      or null; state is the start state. kind number | choice | draw (see question.js)
//   view(state, env)          -> {figure, say, table: {caption, head, rows, now}}; figure is HTML of SVGs
//   tall                      the figure does not fit a screen with its controls: they stand above it, else below
//   changed(key)              more of the state that a control changes;  fresh: what it makes of `local`
//   actions {name(api, data)} for buttons data-act="name" in the figure;  drag(api, what, {x, y}) for data-drag handles
//   nudge(api, what, by)      the same by keyboard: arrows are ±1, page keys ±5, Home and End ∓Infinity
// env: {gpu, gpuKey, width, shown (the question is answered), local (what this view alone knows), still (on paper)}.
import asking from "./asking.css";
import { allowed, build } from "./controls.js";
import { draggable } from "./drag.js";
import { esc } from "./format.js";
import { chooseGpu, chosenGpu, DEFAULT_GPU, GPUS, gpuOptions, isGpu, onGpu } from "./gpu.js";
import { painter } from "./motion.js";
import { FirstQuestion, questionName } from "./question.js";
import style from "./style.css";
import { watchTheme } from "./theme.js";

const STEPS = {
  ArrowLeft: -1,
  ArrowDown: -1,
  ArrowRight: 1,
  ArrowUp: 1,
  PageDown: -5,
  PageUp: 5,
  Home: -Infinity,
  End: Infinity,
};
const REST = 500; // milliseconds without a change, after which the sentence is spoken
let count = 0;

export function tableHtml({ caption, head, rows, now = -1 }) {
  const cell = (text, i) => (i ? `<td>${esc(text)}</td>` : `<th scope="row">${esc(text)}</th>`);
  const line = (row, i) => `<tr${i === now ? ' class="now"' : ""}>${row.map(cell).join("")}</tr>`;
  const heads = head.map((name) => `<th scope="col">${esc(name)}</th>`).join("");
  return `<table><caption>${esc(caption)}</caption><thead><tr>${heads}</tr></thead><tbody>${rows.map(line).join("")}</tbody></table>`;
}

/** The state with what is missing or not allowed replaced by the default. */
function clean(def, raw, env) {
  const given = Object.entries(raw).filter(([, value]) => value !== undefined && value !== null);
  const state = { ...def.defaults, ...Object.fromEntries(given) };
  for (const spec of def.controls(state, env)) {
    state[spec.key] = allowed(spec, state[spec.key]) ?? allowed(spec, def.defaults[spec.key]) ?? state[spec.key];
  }
  return state;
}

const gpuOf = (state, choice) => choice ?? (isGpu(state.gpu) ? state.gpu : DEFAULT_GPU);

/** The worked figure for paper and for pages without scripts: needs no browser. */
export function still(def, raw, width = 640) {
  const gpuKey = gpuOf(raw, null);
  const env = { gpu: GPUS[gpuKey], gpuKey, width, shown: true, still: true, local: {}, id: `still-${def.name}` };
  const { figure, say, table } = def.view(clean(def, raw, env), env);
  return { figure, say, table: tableHtml(table), title: def.title };
}

export function explorer(def) {
  return {
    def,
    still: (raw, width) => still(def, raw, width),
    render({ model, el }) {
      const shown = new Explorer(def, model, el);
      return () => shown.end();
    },
  };
}

function frameHtml(def, prefix) {
  const controls = `<fieldset class="controls"><legend class="unseen">Settings</legend><div style="display:contents"></div></fieldset>`;
  const figure = `<div class="figure"></div>`;
  return `<style>${style}${asking}</style><div class="x" role="group" aria-label="${esc(def.title)}" data-figure="${def.name}">
<div class="head"><p class="title">${esc(def.title)}</p><div class="gpu"></div></div>
<div class="ask q"></div>${def.tall ? controls + figure : figure + controls}<p class="say"></p><p class="unseen live" role="status" aria-live="polite"></p>
<div class="foot"><button class="plain numbers-button" data-act="numbers" data-key="numbers" aria-expanded="false" aria-controls="${prefix}-numbers">Numbers as a table</button><button class="plain" data-act="reset" data-key="reset">Reset</button></div>
<div class="numbers" id="${prefix}-numbers" tabindex="0" role="region" aria-label="Numbers: ${esc(def.title)}"></div></div>`;
}

class Explorer {
  constructor(def, model, el) {
    Object.assign(this, { def, model, prefix: `x${++count}`, local: {}, width: 0, specs: "", printing: false });
    this.ends = []; // called when the figure is taken away
    this.paper = matchMedia("print"); // on paper a figure is worked out, whether its question is answered or not
    this.#build(el);
    this.start = this.#startState();
    this.question = this.#makeQuestion();
    if (this.question.question?.kind === "draw" && this.question.guess) this.local.guess = this.question.guess;
    this.api = this.#makeApi();
    this.#listen();
    this.#watch();
    this.width = Math.floor(this.part("figure").clientWidth);
    this.question.draw();
    this.draw();
    this.part("live").textContent = this.part("say").textContent;
  }

  part(name) {
    return this.root.querySelector(`.${name}`);
  }

  #build(el) {
    this.host = document.createElement("div");
    this.host.setAttribute("data-lm-suppress-shortcuts", "true"); // JupyterLab's single-key shortcuts: "d d" deletes a cell
    el.append(this.host);
    this.root = this.host.attachShadow({ mode: "open" });
    this.root.innerHTML = frameHtml(this.def, this.prefix);
    this.paint = painter(this.part("figure"));
    this.showControls = () => {};
    this.ends.push(
      () => this.host.remove(),
      watchTheme((dark) => this.part("x").toggleAttribute("data-dark", dark)),
    );
    if (this.def.usesGpu === false) return;
    const id = `${this.prefix}-gpu`;
    const options = gpuOptions().map(([key, name]) => `<option value="${key}">${esc(name)}</option>`);
    this.part("gpu").innerHTML =
      `<label for="${id}">My GPU</label><select id="${id}" data-key="gpu">${options.join("")}</select>`;
    this.part("gpu")
      .querySelector("select")
      .addEventListener("change", (event) => chooseGpu(event.target.value));
  }

  env() {
    const gpuKey = gpuOf({ gpu: this.model.get("gpu") }, chosenGpu());
    return {
      gpu: GPUS[gpuKey],
      gpuKey,
      width: Math.max(260, this.width || 640),
      shown: !this.question?.open || this.printing || this.paper.matches,
      local: this.local,
      still: false,
      id: this.prefix,
    };
  }

  read() {
    const keys = Object.keys(this.def.defaults);
    return clean(this.def, Object.fromEntries(keys.map((key) => [key, this.model.get(key)])), this.env());
  }

  /** The settings of the page's or cell's author, without the changes of the address and the learner. */
  #startState() {
    const given = this.model.get("start") ?? {};
    const start = clean(this.def, { ...given, gpu: this.model.get("gpu") }, this.env());
    this.model.urlKeys = this.def.controls(start, this.env()).map((spec) => spec.key); // a page's host writes these into the address
    return start;
  }

  #makeQuestion() {
    const { def, start, model } = this;
    const asks = model.get("ask") !== false && def.question;
    const key = asks ? (def.question(start, this.env())?.key ?? "") : "";
    return new FirstQuestion(this.part("ask"), {
      question: (env) => (asks ? def.question(start, env) : null),
      name: questionName(key, start, def.defaults),
      env: () => this.env(),
      readDrawing: (question) => question.read(this.read(), this.env()),
      linked: model.linked === true,
      say: (text) => this.#speak(text),
      answered: (guess) => this.#answered(guess),
    });
  }

  #answered(guess) {
    if (this.question.question.kind === "draw") this.local = { ...this.local, guess };
    this.draw();
  }

  #makeApi() {
    const explorer = this;
    return {
      get state() {
        return explorer.read();
      },
      get env() {
        return explorer.env();
      },
      set: (changes) => explorer.set(changes),
      local(changes) {
        explorer.local = { ...explorer.local, ...changes };
        explorer.draw();
      },
    };
  }

  set(changes) {
    if (this.local.playing) this.local = { ...this.local, playing: false };
    this.setting = true; // drawn once, not for each change that the model reports
    for (const [key, value] of Object.entries(changes)) this.model.set(key, value);
    this.model.save_changes();
    this.setting = false;
    this.draw();
  }

  draw() {
    const state = this.read();
    const env = this.env();
    this.#drawControls(state, env);
    const { figure, say, table } = this.def.view(state, env);
    const box = this.part("figure");
    const focus = box.contains(this.root.activeElement) ? this.root.activeElement.dataset.key : null;
    this.paint(figure);
    const again = box.querySelector(`[data-key="${focus}"]:not(:disabled)`);
    if (focus) (again ?? box.querySelector("[data-act]:not(:disabled)"))?.focus();
    this.part("numbers").innerHTML = env.shown ? tableHtml(table) : '<p class="note">After your guess.</p>';
    const select = this.part("gpu").querySelector("select");
    if (select) select.value = env.gpuKey;
    if (this.part("say").textContent === say) return;
    this.part("say").textContent = say;
    this.#speak(say);
  }

  #drawControls(state, env) {
    const wanted = this.def.controls(state, env);
    const signature = JSON.stringify(wanted, (_key, value) => (typeof value === "function" ? undefined : value));
    const box = this.part("controls").lastElementChild;
    if (signature !== this.specs) {
      const focus = this.root.activeElement?.dataset?.key;
      this.specs = signature;
      this.showControls = build(box, wanted, this.prefix, (key, value) => {
        if (this.def.fresh) this.local = { ...this.local, ...this.def.fresh };
        this.set({ [key]: value, ...(this.def.changed?.(key) ?? {}) });
      });
      if (focus) box.querySelector(`[data-key="${focus}"]`)?.focus();
    }
    this.part("controls").hidden = wanted.length === 0;
    this.part("controls").disabled = !env.shown;
    this.showControls(state);
  }

  /** Speak in the live region once nothing has changed for a while: of ten key presses on a slider the last. */
  #speak(text) {
    clearTimeout(this.timer);
    this.timer = setTimeout(() => {
      this.part("live").textContent = text;
    }, REST);
  }

  #numbers(button) {
    const open = this.part("numbers").toggleAttribute("data-open");
    button.setAttribute("aria-expanded", String(open));
    button.textContent = open ? "Hide the table" : "Numbers as a table";
  }

  #reset() {
    this.local = {};
    this.question.forget();
    const keys = Object.keys(this.def.defaults).filter((key) => key !== "gpu" && key !== "ask");
    this.set(Object.fromEntries(keys.map((key) => [key, this.start[key]])));
  }

  /** Buttons and fields, those of the frame and those inside the figure. */
  #listen() {
    const { root, def, api } = this;
    root.addEventListener("click", (event) => {
      const button = event.target.closest("[data-act]");
      if (!button || button.disabled) return;
      const { act, ...data } = button.dataset;
      if (def.actions?.[act]) def.actions[act](api, data);
      else if (act === "numbers") this.#numbers(button);
      else if (act === "reset") this.#reset();
    });
    root.addEventListener("change", (event) => {
      const field = event.target.closest(".figure [data-change]");
      if (!field) return;
      const { change, ...data } = { ...field.dataset, value: field.value };
      requestAnimationFrame(() => def.actions[change](api, data)); // drawn anew once the focus is where the learner goes
    });
    root.addEventListener("keydown", (event) => {
      const held = event.target.closest("[role=slider][data-drag]");
      const by = STEPS[event.key];
      if (!held || by === undefined) return;
      event.preventDefault();
      def.nudge(api, held.dataset.drag, by);
    });
    draggable(this.part("figure"), (what, place) => def.drag?.(api, what, place));
  }

  /** Changes from outside: the kernel, the GPU of the page, the width, the printer. */
  #watch() {
    const draw = () => this.setting || this.draw();
    const listen = (target, type, listener) => {
      target.addEventListener(type, listener);
      this.ends.push(() => target.removeEventListener(type, listener));
    };
    for (const key of Object.keys(this.def.defaults)) {
      this.model.on(`change:${key}`, draw);
      this.ends.push(() => this.model.off(`change:${key}`, draw));
    }
    for (const type of ["beforeprint", "afterprint"]) {
      listen(globalThis, type, () => {
        this.printing = type === "beforeprint";
        draw();
      });
    }
    listen(this.paper, "change", draw);
    this.ends.push(onGpu((key) => this.#gpuChanged(key)));
    const sizes = new ResizeObserver(() => {
      const now = Math.floor(this.part("figure").clientWidth);
      if (!now || now === this.width) return;
      this.width = now;
      draw();
    });
    sizes.observe(this.part("figure"));
    this.ends.push(() => sizes.disconnect());
  }

  #gpuChanged(key) {
    if (this.model.get("gpu") !== undefined && this.model.get("gpu") !== key) {
      this.model.set("gpu", key);
      this.model.save_changes();
    }
    this.question.gpuChanged();
    this.draw();
  }

  end() {
    clearTimeout(this.timer);
    for (const end of this.ends) end();
  }
}
