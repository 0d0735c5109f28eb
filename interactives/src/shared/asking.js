// One question on the screen: a number box, options, or items to be put in order; then what was right and why.

import { judge, parseNumber, scrambled, shownNumber, shuffled } from "./answers.js";
import { h, rich, words } from "./dom.js";

let count = 0;

/**
 * Builds a question. `seed` decides the order of options; `before` is an earlier answer, shown beside.
 * Returns {element, read(), focus(), reveal(answer), said(answer)}: read gives {answer} or {why}.
 */
export function ask(question, variant, { label, seed, say, before = null }) {
  const id = `q${++count}`;
  const element = h("fieldset", { class: "question", "data-question": question.id });
  const legend = h("legend", {}, label ? `${label} ` : "", rich(variant.prompt));
  const body = { numeric: askNumber, choice: askChoice, ordering: askOrder }[question.kind](variant, { id, seed, say });
  const fault = h("p", { class: "fault", id: `${id}-fault`, role: "alert" });
  element.append(legend, body.element, fault);
  const said = (answer) => sayAnswer(question.kind, variant, answer);
  if (before !== null) element.append(h("p", { class: "before" }, `At the start you said: ${said(before)}.`));
  return {
    element,
    kind: question.kind,
    variant,
    said,
    focus: () => body.focus(),
    read() {
      const found = body.read();
      fault.textContent = found.why ?? "";
      body.mark?.(found.why !== undefined, fault.id);
      return found;
    },
    /** Shows key, verdict and every explanation, and locks the inputs. Returns the judgement. */
    reveal(answer) {
      fault.textContent = "";
      const verdict = answer === null ? { right: false, mistake: null } : judge(question.kind, variant, answer);
      element.disabled = true;
      body.explain?.(answer);
      element.append(feedback(question.kind, variant, answer, verdict, said));
      return verdict;
    },
  };
}

function sayAnswer(kind, variant, answer) {
  if (answer === null || answer === undefined) return "nothing";
  if (kind === "numeric") return `${shownNumber(answer)}${variant.unit ? ` ${variant.unit}` : ""}`;
  if (kind === "choice") return words(variant.options[answer]?.text ?? "");
  return answer.map((item) => words(variant.items[item] ?? "")).join(", ");
}

function feedback(kind, variant, answer, { right, mistake }, said) {
  const box = h("div", { class: "feedback" });
  const mark = right ? h("span", { class: "right" }, "✓ Right.") : h("span", { class: "wrong" }, "✗ Not this.");
  const key = kind === "numeric" ? `${variant.shown}${variant.unit ? ` ${variant.unit}` : ""}` : null;
  if (kind === "numeric") {
    const yours = answer === null ? "" : ` You said ${said(answer)}.`;
    box.append(h("p", {}, mark, `${right ? "" : yours} It is `, h("strong", {}, key), "."));
    if (mistake) box.append(h("p", {}, h("strong", {}, `${sentence(mistake.name)}: `), rich(mistake.explain)));
  } else if (kind === "choice") {
    box.append(h("p", {}, mark));
  } else {
    box.append(h("p", {}, mark, right ? "" : " The right order:"));
    if (!right)
      box.append(
        h(
          "ol",
          { class: "rightly" },
          variant.items.map((item) => h("li", {}, rich(item))),
        ),
      );
  }
  box.append(h("p", {}, rich(variant.explain)));
  return box;
}

const sentence = (text) => text.charAt(0).toUpperCase() + text.slice(1);

function askNumber(variant, { id }) {
  const input = h("input", {
    type: "text",
    inputmode: "decimal",
    id: `${id}-number`,
    autocomplete: "off",
    spellcheck: "false",
  });
  const label = h(
    "label",
    { class: "unseen", for: `${id}-number` },
    `Your answer${variant.unit ? ` in ${variant.unit}` : ""}`,
  );
  const readAs = h("span", { class: "note" });
  input.addEventListener("input", () => {
    const { value } = parseNumber(input.value, variant.unit);
    readAs.textContent = value !== undefined && /[,']/.test(input.value) ? `read as ${shownNumber(value)}` : "";
  });
  return {
    element: h("div", { class: "number" }, label, input, variant.unit ? h("span", {}, variant.unit) : null, readAs),
    focus: () => input.focus(),
    mark(faulty, faultId) {
      input.toggleAttribute("aria-invalid", faulty);
      if (faulty) input.setAttribute("aria-invalid", "true");
      faulty ? input.setAttribute("aria-describedby", faultId) : input.removeAttribute("aria-describedby");
    },
    explain(answer) {
      if (answer !== null && input.value === "") input.value = shownNumber(answer);
    },
    read() {
      const { value, why } = parseNumber(input.value, variant.unit);
      return why === undefined ? { answer: value } : { why, empty: input.value.trim() === "" };
    },
  };
}

function askChoice(variant, { id, seed }) {
  const order = shuffled(variant.options.length, seed);
  const inputs = new Map();
  const places = new Map();
  const box = h("div", { class: "options" });
  for (const index of order) {
    const input = h("input", { type: "radio", name: id, value: index });
    const place = h(
      "div",
      {},
      h("label", { class: "option" }, input, h("span", {}, rich(variant.options[index].text))),
    );
    inputs.set(index, input);
    places.set(index, place);
    box.append(place);
  }
  return {
    element: box,
    focus: () => inputs.get(order[0]).focus(),
    read() {
      const chosen = order.find((index) => inputs.get(index).checked);
      return chosen === undefined ? { why: "Choose one.", empty: true } : { answer: chosen };
    },
    explain(answer) {
      for (const [index, place] of places) {
        const option = variant.options[index];
        const kind = option.correct ? "right-one" : index === answer ? "chosen" : "";
        const head = option.correct ? "✓ " : index === answer ? "✗ Your answer. " : "";
        const name = option.mistake ? h("strong", {}, `${sentence(option.mistake)}: `) : null;
        place.append(h("p", { class: `why ${kind}` }, head, name, rich(option.explain)));
      }
    },
  };
}

function askOrder(variant, { seed, say }) {
  let order = scrambled(variant.items.length, seed);
  const list = h("ol", { class: "order" });
  let moved = false;
  const draw = (focus) => {
    list.replaceChildren(
      ...order.map((item, place) =>
        h(
          "li",
          {},
          h("span", { "aria-hidden": "true" }, `${place + 1}`),
          h("span", {}, rich(variant.items[item])),
          button(item, place, -1, "↑", "earlier"),
          button(item, place, 1, "↓", "later"),
        ),
      ),
    );
    if (focus) list.children[focus.place].querySelectorAll("button")[focus.step < 0 ? 0 : 1].focus();
  };
  const button = (item, place, step, sign, where) => {
    const possible = place + step >= 0 && place + step < order.length;
    const name = words(variant.items[item]);
    return h(
      "button",
      {
        type: "button",
        "aria-label": `Move ${where}: ${name}`,
        "aria-disabled": possible ? null : "true",
        click() {
          if (!possible) return;
          order = [...order];
          [order[place], order[place + step]] = [order[place + step], order[place]];
          moved = true;
          draw({ place: place + step, step });
          say(`${name}: now ${place + step + 1} of ${order.length}.`);
        },
      },
      sign,
    );
  };
  draw(null);
  return {
    element: h("div", {}, h("p", { class: "note" }, "First at the top. The arrows move an item."), list),
    focus: () => list.querySelector("button").focus(),
    read: () => ({ answer: order, untouched: !moved }),
  };
}
