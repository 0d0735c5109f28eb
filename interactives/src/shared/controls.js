// Controls as data: a slider with its number box, a choice, a check box, a line of text. Both ends of a pair set the
// same value; what cannot be used is said beside the control and changes nothing.
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
      return `<div class="control"><div class="top"><label for="${id}">${label}</label><span class="value"><input type="number" id="${id}-box" data-key="${spec.key}-box" inputmode="decimal" min="${spec.min}" max="${spec.max}" step="any" aria-label="${label}, exact value${spec.unit ? ` in ${esc(spec.unit)}` : ""}" aria-describedby="${id}-fault">${unit}</span></div><input type="range" id="${id}" data-key="${spec.key}" ${range}>${fault}</div>`;
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

/** Fills `box` with the controls; `set(key, value)` is told of every change. Returns a function that shows a state. */
export function build(box, specs, prefix, set) {
  box.innerHTML = specs.map((spec) => markup(spec, `${prefix}-${spec.key}`)).join("");
  const find = (key, part = "") => box.querySelector(`#${prefix}-${key}${part}`);
  const show = [];
  for (const spec of specs) {
    const main = find(spec.key);
    const fault = find(spec.key, "-fault");
    if (spec.kind === "number") {
      const number = find(spec.key, "-box");
      const slide = (value) => {
        main.value = spec.stops ? nearest(spec.stops, value) : value;
        main.setAttribute("aria-valuetext", say(spec, value));
      };
      main.addEventListener("input", () => {
        fault.textContent = "";
        set(spec.key, spec.stops ? spec.stops[Number(main.value)] : Number(main.value));
      });
      const typed = () => {
        const value = Number(number.value);
        const whole = fine(spec) ? "" : "whole ";
        const listed = !spec.only || spec.stops.includes(value);
        const good =
          number.value !== "" &&
          value >= spec.min &&
          value <= spec.max &&
          (!whole || Number.isInteger(value)) &&
          listed;
        number.setAttribute("aria-invalid", String(!good));
        fault.textContent = good
          ? ""
          : spec.only
            ? `One of ${spec.stops.join(", ")}, please.`
            : `A ${whole}number from ${tick(spec.min)} to ${fixed(spec.max)}, please.`;
        if (good) set(spec.key, value);
      };
      number.addEventListener("change", typed);
      number.addEventListener(
        "input",
        () => !spec.only && number.value !== "" && Number(number.value) >= spec.min && typed(),
      );
      show.push((state) => {
        if (!number.matches(":focus") || Number(number.value) !== state[spec.key])
          number.value = String(state[spec.key]);
        number.removeAttribute("aria-invalid");
        fault.textContent = "";
        slide(state[spec.key]);
      });
    } else if (spec.kind === "check") {
      main.addEventListener("change", () => set(spec.key, main.checked));
      show.push((state) => (main.checked = state[spec.key]));
    } else if (spec.kind === "choice") {
      main.addEventListener("change", () => set(spec.key, spec.options[main.selectedIndex][0]));
      show.push((state) => (main.selectedIndex = spec.options.findIndex(([value]) => value === state[spec.key])));
    } else {
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
      show.push((state) => (main.value = spec.format(state[spec.key])));
    }
  }
  return (state) => show.forEach((each) => each(state));
}
