// The frame of every figure: question, controls, picture, one sentence in a live region, table, reset.
//
// A figure is data and pure functions; the frame does the rest, in JupyterLab (anywidget) and on the page alike:
//   name, title, usesGpu      defaults: the start state (the traits of the Python class)
//   controls(state, env)      specs of controls.js; the state they hold also goes into the page's address
//   question(state, env)      or null; state is the start state. kind number | choice | draw (see question.js)
//   view(state, env)          -> {figure, say, table: {caption, head, rows, now}}; figure is HTML of SVGs
//   tall                      the figure does not fit a screen with its controls: they stand above it, else below
//   changed(key)              more of the state that a control changes;  fresh: what it makes of `local`
//   actions {name(api, data)} for buttons data-act="name" in the figure;  drag(api, event data) for data-drag handles
// env: {gpu, gpuKey, width, shown (the question is answered), local (what this view alone knows), still (on paper)}.
import { allowed, build } from "./controls.js";
import { esc } from "./format.js";
import { chooseGpu, chosenGpu, DEFAULT_GPU, GPUS, gpuOptions, isGpu, onGpu } from "./gpu.js";
import { answerGiven, askHtml, isRight, keepAnswer, record, verdict } from "./question.js";
import style from "./style.css";
import { stillMotion, watchTheme } from "./theme.js";

let count = 0;

export function tableHtml({ caption, head, rows, now = -1 }) {
  const cells = (row, i) =>
    `<tr${i === now ? ' class="now"' : ""}>${row.map((cell, j) => (j ? `<td>${esc(cell)}</td>` : `<th scope="row">${esc(cell)}</th>`)).join("")}</tr>`;
  return `<table><caption>${esc(caption)}</caption><thead><tr>${head.map((name) => `<th scope="col">${esc(name)}</th>`).join("")}</tr></thead><tbody>${rows.map(cells).join("")}</tbody></table>`;
}

/** The state with what is missing or not allowed replaced by the default. */
function clean(def, raw, env) {
  const state = {
    ...def.defaults,
    ...Object.fromEntries(Object.entries(raw).filter(([, value]) => value !== undefined && value !== null)),
  };
  for (const spec of def.controls(state, env))
    state[spec.key] = allowed(spec, state[spec.key]) ?? allowed(spec, def.defaults[spec.key]) ?? state[spec.key];
  return state;
}

const gpuOf = (state, choice) => choice ?? (isGpu(state.gpu) ? state.gpu : DEFAULT_GPU);

/** The worked figure for paper and for pages without scripts: needs no browser. */
export function still(def, raw, width = 640) {
  const gpuKey = gpuOf(raw, null);
  const env = { gpu: GPUS[gpuKey], gpuKey, width, shown: true, still: true, local: {}, id: `still-${def.name}` };
  const state = clean(def, raw, env);
  const { figure, say, table } = def.view(state, env);
  return { figure, say, table: tableHtml(table), title: def.title };
}

export function explorer(def) {
  return { def, still: (raw, width) => still(def, raw, width), render: ({ model, el }) => mount(def, model, el) };
}

function mount(def, model, el) {
  const prefix = `x${++count}`;
  const host = document.createElement("div");
  host.setAttribute("data-lm-suppress-shortcuts", "true"); // JupyterLab's single-key shortcuts: "d d" deletes a cell
  el.append(host);
  const root = host.attachShadow({ mode: "open" });
  const controls = `<fieldset class="controls"><legend class="unseen">Settings</legend><div style="display:contents"></div></fieldset>`;
  const figure = `<div class="figure"></div>`;
  root.innerHTML = `<style>${style}</style><div class="x" role="group" aria-label="${esc(def.title)}" data-figure="${def.name}">
<div class="head"><p class="title">${esc(def.title)}</p><div class="gpu"></div></div>
<div class="ask"></div>${def.tall ? controls + figure : figure + controls}<p class="say" role="status" aria-live="polite"></p>
<div class="foot"><button class="plain numbers-button" data-act="numbers" data-key="numbers" aria-expanded="false" aria-controls="${prefix}-numbers">Numbers as a table</button><button class="plain" data-act="reset" data-key="reset">Reset</button></div>
<div class="numbers" id="${prefix}-numbers" tabindex="0" role="region" aria-label="Numbers: ${esc(def.title)}"></div></div>`;
  const part = (name) => root.querySelector(`.${name}`);
  const frame = part("x");
  const controlsBox = part("controls").lastElementChild;

  let local = {};
  let width = 0;
  let asked; // undefined: not yet; null: shown without guessing; else the guess
  let specs = "";
  let question = null;
  let showControls = () => {};
  const stopTheme = watchTheme((dark) => frame.toggleAttribute("data-dark", dark));
  // On paper a figure is worked out, whether its question is answered or not.
  const paper = matchMedia("print");
  let printing = false;
  const onPaper = (event) => {
    printing = event.type === "beforeprint";
    draw();
  };
  const env = () => {
    const gpuKey = gpuOf({ gpu: model.get("gpu") }, chosenGpu());
    return {
      gpu: GPUS[gpuKey],
      gpuKey,
      width: Math.max(260, width || 640),
      shown: asked !== undefined || !question || printing || paper.matches,
      local,
      still: false,
      id: prefix,
    };
  };
  const read = () =>
    clean(def, Object.fromEntries(Object.keys(def.defaults).map((key) => [key, model.get(key)])), env());
  const start = { ...read() };
  model.urlKeys = def.controls(start, env()).map((spec) => spec.key); // a page's host writes these into the address

  const ask = () => (model.get("ask") === false ? null : (def.question?.(start, env()) ?? null));
  question = ask();
  if (question) asked = answerGiven(question);
  if (question?.kind === "draw" && asked) local.guess = asked;

  function set(changes) {
    if (local.playing) local = { ...local, playing: false };
    for (const [key, value] of Object.entries(changes)) model.set(key, value);
    model.save_changes();
    draw();
  }
  const api = {
    get state() {
      return read();
    },
    get env() {
      return env();
    },
    set,
    local: (changes) => {
      local = { ...local, ...changes };
      draw();
    },
    reveal: () => commit(null),
    model,
  };

  function commit(guess) {
    asked = guess;
    keepAnswer(question, guess);
    if (guess !== null) record(question, guess);
    frame.setAttribute("data-moves", "");
    drawQuestion();
    draw();
    part("ask").querySelector("[data-key=verdict]")?.focus();
  }

  function drawQuestion() {
    const box = part("ask");
    question = ask();
    box.hidden = !question;
    if (!question) return;
    if (asked === undefined) {
      box.innerHTML = askHtml(question, prefix);
      return;
    }
    const answer = question.kind === "draw" ? question.verdict(asked, read(), env()) : verdict(question, asked);
    box.innerHTML = `<p class="note">${esc(question.text)}</p><p tabindex="-1" data-key="verdict">${answer}</p>`;
  }

  function draw() {
    const state = read();
    const now = env();
    const wanted = def.controls(state, now);
    const signature = JSON.stringify(wanted, (_key, value) => (typeof value === "function" ? undefined : value));
    if (signature !== specs) {
      const focus = root.activeElement?.dataset?.key;
      specs = signature;
      showControls = build(controlsBox, wanted, prefix, (key, value) => {
        if (def.fresh) local = { ...local, ...def.fresh };
        set({ [key]: value, ...(def.changed?.(key) ?? {}) });
      });
      if (focus) controlsBox.querySelector(`[data-key="${focus}"]`)?.focus();
    }
    part("controls").hidden = wanted.length === 0;
    part("controls").disabled = !now.shown;
    showControls(state);
    const { figure, say, table } = def.view(state, now);
    const box = part("figure");
    const focus = box.contains(root.activeElement) ? root.activeElement.dataset.key : null;
    box.innerHTML = figure;
    if (focus)
      (
        box.querySelector(`[data-key="${focus}"]:not(:disabled)`) ?? box.querySelector("[data-act]:not(:disabled)")
      )?.focus();
    if (part("say").textContent !== say) part("say").textContent = say;
    part("numbers").innerHTML = now.shown ? tableHtml(table) : '<p class="note">After your guess.</p>';
    const select = part("gpu").querySelector("select");
    if (select) select.value = now.gpuKey;
  }

  if (def.usesGpu !== false) {
    part("gpu").innerHTML =
      `<label for="${prefix}-gpu">My GPU</label><select id="${prefix}-gpu" data-key="gpu">${gpuOptions()
        .map(([key, name]) => `<option value="${key}">${esc(name)}</option>`)
        .join("")}</select>`;
    part("gpu")
      .querySelector("select")
      .addEventListener("change", (event) => chooseGpu(event.target.value));
  }
  const stopGpu = onGpu((key) => {
    if (model.get("gpu") !== undefined && model.get("gpu") !== key) {
      model.set("gpu", key);
      model.save_changes();
    }
    if (question && asked !== undefined && question.kind !== "draw") asked = null; // the answer is another one now
    drawQuestion();
    draw();
  });

  const builtIn = {
    numbers(button) {
      const open = part("numbers").toggleAttribute("data-open");
      button.setAttribute("aria-expanded", String(open));
      button.textContent = open ? "Hide the table" : "Numbers as a table";
    },
    reset() {
      local = {};
      if (question) keepAnswer(question, undefined);
      asked = undefined;
      set(
        Object.fromEntries(
          Object.keys(def.defaults)
            .filter((key) => key !== "gpu" && key !== "ask")
            .map((key) => [key, start[key]]),
        ),
      );
      drawQuestion();
      draw();
    },
    skip: () => commit(null),
    commit() {
      const fault = part("ask").querySelector(".fault");
      if (question.kind === "draw") {
        const guess = question.read(read(), env());
        local = { ...local, guess };
        commit(guess);
      } else if (question.kind === "choice") {
        const chosen = part("ask").querySelector("input:checked");
        if (chosen) commit(Number(chosen.value));
        else fault.textContent = "Choose one first. Being wrong costs nothing here.";
      } else {
        const typed = part("ask").querySelector("input").value;
        if (typed !== "" && Number.isFinite(Number(typed))) commit(Number(typed));
        else fault.textContent = "Type a number first. Being wrong costs nothing here.";
      }
    },
  };
  root.addEventListener("click", (event) => {
    const button = event.target.closest("[data-act]");
    if (!button || button.disabled) return;
    const { act, ...data } = button.dataset;
    if (def.actions?.[act]) def.actions[act](api, data);
    else builtIn[act]?.(button);
  });
  root.addEventListener("keydown", (event) => {
    if (event.key === "Enter" && event.target.matches(".ask input")) builtIn.commit();
  });
  root.addEventListener("change", (event) => {
    const field = event.target.closest(".figure [data-change]");
    if (!field) return;
    const { change, ...data } = { ...field.dataset, value: field.value };
    requestAnimationFrame(() => def.actions[change](api, data)); // drawn anew once the focus is where the learner goes
  });
  root.addEventListener("input", (event) => {
    const field = event.target.closest(".figure [data-input]");
    if (field)
      def.actions?.[field.dataset.input]?.(api, {
        ...field.dataset,
        value: field.type === "checkbox" ? field.checked : field.value,
      });
  });

  let dragged = null;
  const place = (event) => {
    const box = dragged.svg.getBoundingClientRect();
    const zoom = dragged.svg.viewBox.baseVal.width / box.width;
    return { x: (event.clientX - box.left) * zoom, y: (event.clientY - box.top) * zoom };
  };
  part("figure").addEventListener("pointerdown", (event) => {
    const handle = event.target.closest("[data-drag]");
    if (!handle || !def.drag) return;
    dragged = { what: handle.dataset.drag, index: handle.closest("svg").dataset.index, svg: handle.closest("svg") };
    part("figure").setPointerCapture(event.pointerId);
    event.preventDefault();
    def.drag(api, dragged.what, place(event));
  });
  part("figure").addEventListener("pointermove", (event) => {
    if (!dragged) return;
    if (!dragged.svg.isConnected)
      dragged.svg = part("figure").querySelector(`[data-drag="${dragged.what}"]`)?.closest("svg");
    if (dragged.svg) def.drag(api, dragged.what, place(event));
  });
  for (const end of ["pointerup", "pointercancel"]) part("figure").addEventListener(end, () => (dragged = null));

  const watched = Object.keys(def.defaults);
  for (const key of watched) model.on(`change:${key}`, draw);
  const sizes = new ResizeObserver(() => {
    const now = Math.floor(part("figure").clientWidth);
    if (now && now !== width) {
      width = now;
      draw();
    }
  });
  width = Math.floor(part("figure").clientWidth);
  drawQuestion();
  draw();
  sizes.observe(part("figure"));
  const prints = ["beforeprint", "afterprint"];
  for (const type of prints) addEventListener(type, onPaper);
  paper.addEventListener("change", onPaper);
  if (!stillMotion()) frame.setAttribute("data-moves", "");
  return () => {
    stopTheme();
    stopGpu();
    sizes.disconnect();
    for (const type of prints) removeEventListener(type, onPaper);
    paper.removeEventListener("change", onPaper);
    for (const key of watched) model.off(`change:${key}`, draw);
    host.remove();
  };
}

export { isRight };
