// Controls as data: a slider with its number box, a choice, a check box, a line of text. Both ends of a pair set the
// same value; what cannot be used is said beside the control and changes nothing.
import { parseNumber } from "./answers.js";
import { esc, fixed, int, num, tick } from "./format.js";

/** Whole numbers from min to max, evenly spread over the logarithm, about `perOctave` to each doubling. */
export function stops(min, max, perOctave = 8) {
  const found = new Set([min]);
  const n = Math.ceil(perOctave * Math.log2(max / min));
  for (let i = 0; i <= n; i++) found.add(Math.round(min * (max / min) ** (i / n)));
  for (let power = 2 ** Math.ceil(Math.log2(min)); power <= max; power *= 2) found.add(power);
  return [...found].sort((a, b) => a - b);
}

const nearest = (list, value) => {
  let best = 0;
  list.forEach((stop, i) => {
    if (Math.abs(Math.log(stop / value)) < Math.abs(Math.log(list[best] / value))) best = i;
  });
  return best;
};

/** Does it take more than whole numbers? */
const fine = (spec) => spec.real || spec.step < 1;

const say = (spec, value) => `${fine(spec) ? num(value) : int(value)}${spec.unit ? ` ${spec.unit}` : ""}`;

/** The value as `spec` allows it, or undefined: for what comes from a link or from Python. */
export function allowed(spec, value) {
  switch (spec.kind) {
    case "number":
      if (typeof value !== "number" || !Number.isFinite(value)) return undefined;
      if (!fine(spec) && !Number.isInteger(value)) return undefined;
      return Math.min(spec.max, Math.max(spec.min, value));
    case "choice":
      return spec.options.find(([option]) => option === value)?.[0];
    case "check":
      return typeof value === "boolean" ? value : undefined;
    case "text":
      try {
        return spec.parse(spec.format(value));
      } catch {
        return undefined;
      }
  }
  return value;
}

function markup(spec, id) {
  const label = esc(spec.label);
  const fault = `<p class="fault" id="${id}-fault" role="alert"></p>`;
  switch (spec.kind) {
    case "number": {
      const range = spec.stops
        ? `min="0" max="${spec.stops.length - 1}" step="1"`
        : `min="${spec.min}" max="${spec.max}" step="${spec.step ?? 1}"`;
      const unit = spec.unit ? `<span>${esc(spec.unit)}</span>` : "";
      const name = `${label}, exact value${spec.unit ? ` in ${esc(spec.unit)}` : ""}`;
      // A text field, since a number field takes no thousands separators and only its own locale's digits.
      const box = `<input type="text" role="spinbutton" class="number-box" id="${id}-box" data-key="${spec.key}-box" inputmode="decimal" autocomplete="off" aria-valuemin="${spec.min}" aria-valuemax="${spec.max}" aria-label="${name}" aria-describedby="${id}-fault">`;
      return `<div class="control"><div class="top"><label for="${id}">${label}</label><span class="value">${box}${unit}</span></div><input type="range" id="${id}" data-key="${spec.key}" ${range}>${fault}</div>`;
    }
    case "choice": {
      const options = spec.options
        .map(([value, name]) => `<option value="${esc(value)}">${esc(name)}</option>`)
        .join("");
      return `<div class="control"><div class="top"><label for="${id}">${label}</label></div><select id="${id}" data-key="${spec.key}">${options}</select></div>`;
    }
    case "check":
      return `<div class="control check"><div class="top"><input type="checkbox" id="${id}" data-key="${spec.key}"><label for="${id}">${label}</label></div></div>`;
    case "text":
      return `<div class="control"><div class="top"><label for="${id}">${label}</label></div><input type="text" id="${id}" data-key="${spec.key}" autocomplete="off" spellcheck="false" aria-describedby="${id}-fault">${fault}</div>`;
  }
  throw new Error(`no control ${spec.kind}`);
}

/** Read the text of a number box: {value, fault: ""}, or {fault} in words. */
function readNumber(spec, text) {
  const { value } = parseNumber(text, spec.unit);
  const listed = !spec.only || spec.stops.includes(value);
  if (value >= spec.min && value <= spec.max && (fine(spec) || Number.isInteger(value)) && listed) {
    return { value, fault: "" };
  }
  const kind = fine(spec) ? "number" : "whole number";
  const range = `A ${kind} from ${tick(spec.min)} to ${fixed(spec.max)}, please.`;
  return { fault: spec.only ? `One of ${spec.stops.join(", ")}, please.` : range };
}

/** The stop that lies `by` places after the one nearest to `value`; the first or last beyond the ends. */
export function stopBeside(list, value, by) {
  return list[Math.min(list.length - 1, Math.max(0, nearest(list, value) + by))];
}

/** The next value up or down, as the slider has it. */
function stepped(spec, value, direction) {
  if (!spec.stops) {
    const next = value + direction * (spec.step ?? 1);
    return Number(Math.min(spec.max, Math.max(spec.min, next)).toPrecision(12));
  }
  const beyond = direction > 0 ? spec.stops.filter((stop) => stop > value) : spec.stops.filter((stop) => stop < value);
  return (direction > 0 ? beyond[0] : beyond.at(-1)) ?? value;
}

function wireNumber(spec, { main, box, fault }, set) {
  let now = spec.min;
  const typed = (final) => {
    const { value, fault: wrong } = readNumber(spec, box.value);
    if (wrong && !final) return;
    box.setAttribute("aria-invalid", String(wrong !== ""));
    fault.textContent = wrong;
    if (!wrong && value !== now) set(spec.key, value);
  };
  main.addEventListener("input", () => {
    fault.textContent = "";
    set(spec.key, spec.stops ? spec.stops[Number(main.value)] : Number(main.value));
  });
  box.addEventListener("change", () => typed(true));
  box.addEventListener("input", () => !spec.only && typed(false));
  box.addEventListener("keydown", (event) => {
    const direction = { ArrowUp: 1, ArrowDown: -1 }[event.key];
    if (direction === undefined) return;
    event.preventDefault();
    set(spec.key, stepped(spec, now, direction));
  });
  return (state) => {
    now = state[spec.key];
    if (!box.matches(":focus") || readNumber(spec, box.value).value !== now) box.value = String(now);
    box.setAttribute("aria-valuenow", String(now));
    box.removeAttribute("aria-invalid");
    fault.textContent = "";
    main.value = spec.stops ? nearest(spec.stops, now) : now;
    main.setAttribute("aria-valuetext", say(spec, now));
  };
}

function wireText(spec, { main, fault }, set) {
  main.addEventListener("change", () => {
    try {
      const value = spec.parse(main.value);
      fault.textContent = "";
      main.setAttribute("aria-invalid", "false");
      set(spec.key, value);
    } catch (error) {
      fault.textContent = error.message;
      main.setAttribute("aria-invalid", "true");
    }
  });
  return (state) => {
    main.value = spec.format(state[spec.key]);
  };
}

function wireCheck(spec, { main }, set) {
  main.addEventListener("change", () => set(spec.key, main.checked));
  return (state) => {
    main.checked = state[spec.key];
  };
}

function wireChoice(spec, { main }, set) {
  main.addEventListener("change", () => set(spec.key, spec.options[main.selectedIndex][0]));
  return (state) => {
    main.selectedIndex = spec.options.findIndex(([value]) => value === state[spec.key]);
  };
}

const WIRES = { number: wireNumber, text: wireText, check: wireCheck, choice: wireChoice };

/** Fill `box` with the controls; `set(key, value)` is told of every change. Returns a function that shows a state. */
export function build(box, specs, prefix, set) {
  box.innerHTML = specs.map((spec) => markup(spec, `${prefix}-${spec.key}`)).join("");
  const find = (key, part = "") => box.querySelector(`#${prefix}-${key}${part}`);
  const shows = specs.map((spec) => {
    const parts = { main: find(spec.key), box: find(spec.key, "-box"), fault: find(spec.key, "-fault") };
    return WIRES[spec.kind](spec, parts, set);
  });
  return (state) => {
    for (const show of shows) show(state);
  };
}
